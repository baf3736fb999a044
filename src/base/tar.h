// Several small files as one tar archive.
// Called by reports of faults.
// Must not know: what the files are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace skillet {

using NamedFile = std::pair<std::string, Bytes>;

// Names of at most 100 bytes; longer ones are truncated. No times and no users: the same files give the same bytes.
Bytes tar(const std::vector<NamedFile>& files);

inline Bytes text_bytes(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace skillet
