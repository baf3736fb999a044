#include "npus/ethosu/compiler/payload.h"

#include <cstring>

namespace skillet::npus::ethosu {

Result<Payload> read_payload(std::span<const uint8_t> bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * 4);
  if (!words.empty() && words[0] == hw::kNewerPayloadMark)
    return error(ErrorCode::unsupported,
                 "its first operand has format COP2, which is not supported: compile without Vela's options "
                 "--cop-format COP2 and --separate-io-regions");
  if (bytes.size() % 4 != 0 || words.empty() || words[0] != hw::kPayloadMark)
    return error(ErrorCode::malformed, "its first operand does not begin with COP1, as Vela's output does");
  Payload payload;
  bool has_config = false;
  for (size_t at = 1; at < words.size();) {
    const std::span<const uint32_t> rest = std::span(words).subspan(at);
    switch (static_cast<hw::Action>(rest[0] & 0xFF)) {
      case hw::Action::nop: ++at; break;
      case hw::Action::config:
        if (rest.size() < hw::PayloadConfig::kWords)
          return error(ErrorCode::malformed, "its first operand ends within the accelerator's description");
        payload.config = bits::read<hw::PayloadConfig>(rest);
        has_config = true;
        at += hw::PayloadConfig::kWords;
        break;
      case hw::Action::stream: {
        const uint64_t count = (rest[0] >> 16) | (rest[0] & 0xFF00) << 8;
        if (!has_config) return error(ErrorCode::malformed, "its first operand does not name the accelerator");
        if (count > rest.size() - 1)
          return error(ErrorCode::malformed, "its first operand has {} words of commands instead of {}",
                       rest.size() - 1, count);
        payload.stream.assign(rest.begin() + 1, rest.begin() + 1 + static_cast<int64_t>(count));
        return payload;
      }
      default:
        return error(ErrorCode::malformed, "word {} of its first operand, 0x{:08x}, has no meaning", at, rest[0]);
    }
  }
  return error(ErrorCode::malformed, "its first operand has no commands");
}

}  // namespace skillet::npus::ethosu
