// GivenInput: BUFFER=FILE of `skillet replay --input`, the contents of a buffer that was not recorded.
// Must not know: captures, devices.
#pragma once

#include <charconv>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::tools {

struct GivenInput {
  uint32_t handle = 0;
  SharedBytes bytes;
  bool is_used = false;
};

inline Result<GivenInput> parse_input(const std::string& text) {
  GivenInput out;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out.handle);
  if (failure != std::errc() || end == text.data() + text.size() || *end != '=')
    return error(ErrorCode::invalid_argument, "--input: must be BUFFER=FILE, such as 3=input.bin, not '{}'", text);
  SK_TRY_ASSIGN(Bytes bytes, read_file(text.substr(static_cast<size_t>(end + 1 - text.data()))));
  out.bytes = std::move(bytes);
  return out;
}

}  // namespace skillet::tools
