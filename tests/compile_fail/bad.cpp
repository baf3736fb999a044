// Each row file that must not compile; the test expects the compiler's message for each, in this order.
#include "bits/bits.h"

#define CASE overlapping
#define ROWS_FILE "compile_fail/overlapping.def"
#include "rows.inc"

#define CASE overlapping_scattered
#define ROWS_FILE "compile_fail/overlapping_scattered.def"
#include "rows.inc"

#define CASE out_of_word
#define ROWS_FILE "compile_fail/out_of_word.def"
#include "rows.inc"

#define CASE out_of_descriptor
#define ROWS_FILE "compile_fail/out_of_descriptor.def"
#include "rows.inc"

#define CASE registers_overlapping
#define ROWS_FILE "compile_fail/registers_overlapping.def"
#include "registers.inc"

#define CASE registers_out_of_word
#define ROWS_FILE "compile_fail/registers_out_of_word.def"
#include "registers.inc"

#define CASE registers_descending
#define ROWS_FILE "compile_fail/registers_descending.def"
#include "registers.inc"
