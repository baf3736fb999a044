// Declares and defines a two-word descriptor from ROWS_FILE.
#include "bits/bits.h"

namespace sample {
#define SK_BITS_TYPE Sample
#define SK_BITS_FILE ROWS_FILE
#include "bits/declare.h"
}  // namespace sample

namespace skillet::bits {
#define SK_BITS_NAMESPACE ::sample
#define SK_BITS_TYPE Sample
#define SK_BITS_NAME "sample"
#define SK_BITS_WORDS 2
#define SK_BITS_FILE ROWS_FILE
#include "bits/define.h"
}  // namespace skillet::bits
