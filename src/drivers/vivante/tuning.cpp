#include "drivers/vivante/tuning.h"

#include <array>

#include "driver/tuning_rows.h"

#define SK_TUNING_FILE "drivers/vivante/tuning.def"
namespace skillet::drivers::vivante {
#include "driver/define_tuning.h"
}  // namespace skillet::drivers::vivante
