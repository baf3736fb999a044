#include "npus/rockchip/compiler/tuning.h"

#include <array>

#include "npu/tuning_rows.h"

#define SK_TUNING_FILE "npus/rockchip/compiler/tuning.def"
namespace skillet::npus::rockchip {
#include "npu/define_tuning.h"
}  // namespace skillet::npus::rockchip
