// A capture as a text that a person edits: every word, and every field that a row names.
// Called by `skillet edit`, and by the verbs that take such a text in place of a capture.
// Must not know: a vendor's anything.
#pragma once

#include <string>
#include <string_view>

#include "capture/reader.h"

namespace skillet::tools {

// What such a text begins with.
inline constexpr std::string_view kEditMark = "# skillet edit 1";

// `chip`: as chip_of() takes it.
Result<std::string> edit_text(capture::Reader& reader, const std::string& chip);
// Errors name the line. Where the text has fields, they win over their bits in the words.
Result<capture::Capture> parse_edit_text(std::string_view text, const std::string& chip);

bool is_edit_text(const std::string& path);
// A capture, or such a text.
Result<capture::Reader> open_jobs(const std::string& path, const std::string& chip = "");

}  // namespace skillet::tools
