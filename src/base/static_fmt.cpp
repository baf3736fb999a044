// fmt's functions, compiled into the plug-in: a host may have another libfmt loaded. Our libraries are compiled against
// the shared one; these definitions have the same names and are found first. Built with -fkeep-inline-functions, which
// is what emits them; the link fails when one is missing.
#define FMT_HEADER_ONLY
#include <fmt/format.h>
