// Pictures in colour on a terminal: a character shows two pixels, one above the other.
// Called by verbs that show pictures.
// Must not know: their content.
#pragma once

#include <string>
#include <string_view>

#include "tools/tensors/picture.h"

namespace skillet::tools {

enum class Colours : uint8_t { none, c256, all };

// A variable of the environment; empty if not set.
std::string_view terminal_variable(const char* name);

// Colours of standard output: none if it is no terminal, or with NO_COLOR or TERM=dumb.
Colours terminal_colours();
struct TerminalSize {
  int columns = 80, rows = 40;
  int width_px = 0, height_px = 0;  // 0: unknown
};
// Size of the terminal at standard output; the defaults above if unknown.
TerminalSize terminal_size();

// Shrinks the picture to fit; never enlarges it.
Picture shrink_into(const Picture& picture, TerminalSize size);

// `picture` must be in colour; it is shrunk to fit. Each row ends with a colour reset and a line end.
std::string half_blocks(const Picture& picture, TerminalSize size, Colours colours);

}  // namespace skillet::tools
