#include "drivers/rockchip/tuning.h"

#include <array>

#include "driver/tuning_rows.h"

#define SK_TUNING_FILE "drivers/rockchip/tuning.def"
namespace skillet::drivers::rockchip {
#include "driver/define_tuning.h"
}  // namespace skillet::drivers::rockchip
