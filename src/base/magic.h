// Kinds of files by their first bytes.
// Called by readers, to name the kind of a file that they cannot read.
// Must not know: the contents of any format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace skillet {

struct Magic {
  size_t at;  // byte offset
  std::string_view bytes, name;
};

// Name of the first row whose bytes are in `file`; empty: no row matches.
inline std::string_view name_of_magic(std::span<const uint8_t> file, std::span<const Magic> rows) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Magic& m) {
    return file.size() >= m.at + m.bytes.size() &&
           std::equal(m.bytes.begin(), m.bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(m.at),
                      [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  });
  return row == rows.end() ? std::string_view() : row->name;
}

}  // namespace skillet
