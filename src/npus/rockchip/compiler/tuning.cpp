#include "npus/rockchip/compiler/tuning.h"

#include <array>

#include "npu/tuning_rows.h"

#define SK_TUNING_FILE "npus/rockchip/compiler/tuning.def"
namespace skillet::npus::rockchip {
#include "npu/define_tuning.h"
}  // namespace skillet::npus::rockchip

namespace skillet::npus::rockchip {

Result<Tuning> tuning_for(const npu::CompileOptions& options) {
  SK_TRY_ASSIGN(Tuning tuning, tuning_of(options));
  const bool tries = options.takes_unproven() && options.tuning != npu::Tuning::recorded;
  tuning.packed_pixels = (tuning.packed_pixels || tries) && options.may_have("packed_pixels");
  tuning.fused_additions = (tuning.fused_additions || tries) && options.may_have("fused_additions");
  return tuning;
}

}  // namespace skillet::npus::rockchip
