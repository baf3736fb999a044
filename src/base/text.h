// Text that comes from outside (file names, names in models, what a user typed), made fit to be shown.
// Called by whoever writes to a terminal, and by readers of options.
// Must not know: where it is shown.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skillet {

// `text` without what steers a terminal: control characters, also those of two bytes in UTF-8, become '?'. Line ends
// and tabs stay where `keeps_lines` says so.
std::string printable(std::string_view text, bool keeps_lines = false);

bool is_utf8(std::string_view text);

// The one of `known` that `word` may have been meant to be (case, a few letters); empty: none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// "1 part", "2 parts"; "entry" becomes "entries".
std::string counted(size_t count, std::string_view noun);

// At most so many bytes of UTF-8, with "..." in place of the rest.
std::string shortened(std::string_view text, size_t most);

// "; did you mean 'run'?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

// "~/x" as "/home/me/x"; everything else as it is.
std::string expand_home(std::string_view path);

}  // namespace skillet
