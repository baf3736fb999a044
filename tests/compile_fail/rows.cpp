// Declares and defines a two-word descriptor from ROWS_FILE.
#include "bits/bits.h"

namespace sample {
#define SK_BITS_TYPE Sample
#define SK_BITS_WORDS 2
#define SK_BITS_FILE ROWS_FILE
#include "bits/declare.h"

using namespace skillet::bits;  // NOLINT: the rows name codecs and places

#define SK_BITS_TYPE Sample
#define SK_BITS_NAME "sample"
#define SK_BITS_FILE ROWS_FILE
#include "bits/define.h"
}  // namespace sample
