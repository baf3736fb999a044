// Pictures in colour on a terminal: a character is two pixels, one above the other.
// Called by verbs that show pictures.
// Must not know: what is on them.
#pragma once

#include <string>
#include <string_view>

#include "tools/tensors/picture.h"

namespace skillet::tools {

enum class Colours : uint8_t { none, c256, all };

// Of the environment; empty where it is not set.
std::string_view terminal_variable(const char* name);

// What standard output can show: none where it is no terminal, or NO_COLOR or TERM=dumb ask for that.
Colours terminal_colours();
struct TerminalSize {
  int columns = 80, rows = 40;
  int width_px = 0, height_px = 0;  // 0: it does not say
};
// Of the terminal behind standard output; the above where nothing tells.
TerminalSize terminal_size();

// As large as fits, but no larger than it is.
Picture shrink_into(const Picture& picture, TerminalSize size);

// `picture` is in colour; as large as fits. Each row ends with the terminal's own colours and a line end.
std::string half_blocks(const Picture& picture, TerminalSize size, Colours colours);

}  // namespace skillet::tools
