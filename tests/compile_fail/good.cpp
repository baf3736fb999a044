// Row files that compile: what refuses the others is not how they are included.
#include "bits/bits.h"

#define CASE good
#define ROWS_FILE "compile_fail/good.def"
#include "rows.inc"

#define CASE registers_good
#define ROWS_FILE "compile_fail/registers_good.def"
#include "registers.inc"
