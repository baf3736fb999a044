// Pictures as terminal graphics: sixel, kitty's protocol.
// Called by verbs that show pictures.
// Must not know: their content.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/tensors/picture.h"

namespace skillet::tools {

enum class Graphics : uint8_t { none, sixel, kitty };

// Graphics of the terminal at standard output, from its variables, or from its answer to a query, with a timeout of a
// third of a second. None if it shows no colours.
Graphics terminal_graphics();
// True if the answer ("\x1b[?62;4;22c") lists sixel among the terminal's features.
bool names_sixel(std::string_view answer);

// `picture` must be in colour. Dithered to 6 x 6 x 6 colours in steps of 51; pixels with exactly such a colour are
// unchanged.
std::string sixel_text(const Picture& picture);
// `png`: bytes of a PNG file.
std::string kitty_text(std::span<const uint8_t> png);

}  // namespace skillet::tools
