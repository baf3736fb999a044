// Pictures as a terminal's own graphics: sixel, kitty's protocol.
// Called by verbs that show pictures.
// Must not know: what is on them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/tensors/picture.h"

namespace skillet::tools {

enum class Graphics : uint8_t { none, sixel, kitty };

// What the terminal behind standard output says that it can: its variables, or its answer to the question what it is,
// for which it is waited a third of a second. None where there is no colour either.
Graphics terminal_graphics();
// Whether an answer ("\x1b[?62;4;22c") names sixel among what the terminal can.
bool names_sixel(std::string_view answer);

// `picture` is in colour. In the 6 x 6 x 6 colours that differ by 51, dithered; those themselves stay what they are.
std::string sixel_text(const Picture& picture);
// Of a PNG file.
std::string kitty_text(std::span<const uint8_t> png);

}  // namespace skillet::tools
