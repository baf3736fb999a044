// Untrusted text (file names, names in models, user input), made safe to display.
// Called by code that writes to a terminal, and by readers of options.
// Must not know: where it is shown.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skillet {

// `text` without control sequences: control characters, also those of two bytes in UTF-8, become '?'. `keeps_lines`
// keeps line ends and tabs.
std::string printable(std::string_view text, bool keeps_lines = false);

bool is_utf8(std::string_view text);

// The element of `known` that `word` is probably a misspelling of (case, a few letters); empty: none is similar.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// "1 part", "2 parts"; "entry" becomes "entries".
std::string counted(size_t count, std::string_view noun);

// At most the first `most` bytes; no character of UTF-8 is cut.
std::string_view beginning(std::string_view text, size_t most);

// At most `most` bytes of UTF-8; the rest is replaced by "...".
std::string shortened(std::string_view text, size_t most);

// "; did you mean 'run'?", or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

// Expands "~/x" to "/home/me/x"; other paths are unchanged.
std::string expand_home(std::string_view path);

}  // namespace skillet
