#include "npus/vivante/compiler/tuning.h"

#include <array>

#include "npu/tuning_rows.h"

#define SK_TUNING_FILE "npus/vivante/compiler/tuning.def"
namespace skillet::npus::vivante {
#include "npu/define_tuning.h"
}  // namespace skillet::npus::vivante
