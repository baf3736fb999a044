// Row files that compile, included as in bad.cpp: so the compiler refuses the rows there, not the includes.
#include "bits/bits.h"

#define CASE good
#define ROWS_FILE "compile_fail/good.def"
#include "rows.inc"

#define CASE registers_good
#define ROWS_FILE "compile_fail/registers_good.def"
#include "registers.inc"
