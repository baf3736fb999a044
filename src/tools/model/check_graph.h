// The graph on the page of `skillet check --html`: a box for each operation, lines between them, drawn as SVG.
// Called by check_html.cpp.
// Must not know: the rest of the page.
#pragma once

#include <string>
#include <string_view>

#include "tools/model/check_chips.h"

namespace skillet::tools {

// Escapes text of a model for HTML.
std::string escaped(std::string_view text);
// "1.2 us"; empty: not known.
std::string us_text(double us);

std::string graph_svg(const ChipsReport& report);

}  // namespace skillet::tools
