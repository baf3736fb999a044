// Declares and defines a register set from ROWS_FILE.
#include "bits/bits.h"

namespace sample {
#define SK_BITS_FILE ROWS_FILE
#include "bits/declare_set.h"

using namespace skillet::bits;  // NOLINT: the rows name codecs and places

#define SK_BITS_SET kSet
#define SK_BITS_FILE ROWS_FILE
#include "bits/define_set.h"
}  // namespace sample
