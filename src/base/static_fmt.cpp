// fmt's functions, compiled into the plug-in, because a host may have loaded another libfmt. Our libraries are compiled
// against the shared one; these definitions have the same names and are found first. Built with
// -fkeep-inline-functions, which emits them; the link fails if one is missing.
#define FMT_HEADER_ONLY
#include <fmt/format.h>
