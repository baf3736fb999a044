// Row files that compile: this shows that the way of including them is not what the compiler refuses in bad.cpp.
#include "bits/bits.h"

#define CASE good
#define ROWS_FILE "compile_fail/good.def"
#include "rows.inc"

#define CASE registers_good
#define ROWS_FILE "compile_fail/registers_good.def"
#include "registers.inc"
