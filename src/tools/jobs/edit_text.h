// A capture as an editable text: every word, and every named field.
// Called by `skillet edit`, and by the verbs that accept such a text as a capture.
// Must not know: anything of a vendor.
#pragma once

#include <string>
#include <string_view>

#include "capture/reader.h"

namespace skillet::tools {

// First line of such a text.
inline constexpr std::string_view kEditMark = "# skillet edit 1";

// `chip`: as for chip_of().
Result<std::string> edit_text(capture::Reader& reader, const std::string& chip);
// Errors name the line. Fields override their bits in the words.
Result<capture::Capture> parse_edit_text(std::string_view text, const std::string& chip);

bool is_edit_text(const std::string& path);
// Opens a capture, or such a text.
Result<capture::Reader> open_jobs(const std::string& path, const std::string& chip = "");

}  // namespace skillet::tools
