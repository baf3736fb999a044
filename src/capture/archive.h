// Archive: the reader and the writer of our binary records; one visit() function per struct serves both ways.
// Called by the capture file format and by driver/program_file; reads untrusted bytes, so every count is checked.
// Must not know: which structs there are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::capture {

// All numbers are little-endian and as wide as their C++ type; counts and lengths are 64 bits.
class ArchiveWriter {
 public:
  static constexpr bool kReading = false;

  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void number(std::string_view /*field*/, const T& value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  template <typename E>
  void choice(std::string_view field, const E& value, E /*last*/) {
    number(field, value);
  }
  void flag(std::string_view field, const bool& value) { number(field, static_cast<uint8_t>(value)); }
  void text(std::string_view field, const std::string& value);
  void blob(std::string_view field, const Bytes& value);
  void words(std::string_view field, const std::vector<uint32_t>& value);
  template <typename T, typename Visit>
  void list(std::string_view field, const std::vector<T>& items, Visit visit) {
    number(field, static_cast<uint64_t>(items.size()));
    for (const T& item : items) visit(*this, item);
  }

  Bytes take() { return std::move(bytes_); }

 private:
  void raw(std::span<const uint8_t> bytes);
  Bytes bytes_;
};

// Keeps its first error and yields zeros from there on; finish() tells. Never reads outside its span, and never
// allocates more than a small multiple of it.
class ArchiveReader {
 public:
  static constexpr bool kReading = true;

  explicit ArchiveReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void number(std::string_view field, T& value) {
    value = T{};
    const std::span<const uint8_t> taken = take(field, sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof value);
  }
  // An enumerator from the first one to `last`.
  template <typename E>
  void choice(std::string_view field, E& value, E last) {
    using Number = std::underlying_type_t<E>;
    number(field, value);
    if (static_cast<Number>(value) <= static_cast<Number>(last)) return;
    fail(error(ErrorCode::malformed, "{}: {} is no known value", field, static_cast<uint64_t>(value)));
    value = E{};
  }
  void flag(std::string_view field, bool& value);
  void text(std::string_view field, std::string& value);
  void blob(std::string_view field, Bytes& value);
  void words(std::string_view field, std::vector<uint32_t>& value);
  template <typename T, typename Visit>
  void list(std::string_view field, std::vector<T>& items, Visit visit) {
    uint64_t count = 0;
    number(field, count);
    // Each item takes at least one byte, so a count beyond the rest of the data is a lie.
    if (count > bytes_.size()) return fail_count(field, count);
    items.clear();
    for (uint64_t i = 0; i < count && ok(); ++i) visit(*this, items.emplace_back());
  }

  bool ok() const { return !error_; }
  // The first error; also an error when bytes are left over.
  Result<void> finish() const;

 private:
  std::span<const uint8_t> take(std::string_view field, uint64_t size);
  uint64_t length(std::string_view field, uint64_t unit);
  void fail(Error e);
  void fail_count(std::string_view field, uint64_t count);

  std::span<const uint8_t> bytes_;
  std::optional<Error> error_;
};

}  // namespace skillet::capture
