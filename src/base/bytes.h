// Little-endian loads and stores on byte spans, hex text, whole-file reading and writing.
// Called by every reader and writer of binary data.
// Must not know: anything above base/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet {

using Bytes = std::vector<uint8_t>;

// Bytes that are read only, kept alive by code that owns them: a vector, a mapped file. Copies share them.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(Bytes bytes) {  // NOLINT: any bytes can be shared
    auto owned = std::make_shared<const Bytes>(std::move(bytes));
    bytes_ = *owned;
    owner_ = std::move(owned);
  }
  SharedBytes(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes)
      : bytes_(bytes), owner_(std::move(owner)) {}

  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  auto begin() const { return bytes_.begin(); }
  auto end() const { return bytes_.end(); }
  operator std::span<const uint8_t>() const { return bytes_; }  // NOLINT: a view of them
  SharedBytes subspan(size_t offset) const { return {owner_, bytes_.subspan(offset)}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  bool operator==(const SharedBytes& other) const { return std::ranges::equal(bytes_, other.bytes_); }

 private:
  std::span<const uint8_t> bytes_;
  std::shared_ptr<const void> owner_;
};

template <typename T>
T load_le(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
void store_le(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

inline std::span<const uint8_t> as_bytes(std::span<const uint32_t> words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4};
}

// Whole file, of at most 2 GiB; a pipe, a device or a folder is refused. Errors name the path and the cause.
Result<Bytes> read_file(const std::string& path);
// Its first bytes, or all where it has fewer.
Result<Bytes> read_file_start(const std::string& path, size_t size_bytes);
Result<void> write_file(const std::string& path, std::span<const uint8_t> bytes);
// Before long work: can a file of this name be written; is this folder there to be read, or can it be made; can these
// files be written in it (none are named: any)?
Result<void> check_place(const std::string& path);
Result<void> check_folder(const std::string& path);
Result<void> check_files(const std::string& folder, std::span<const std::string> names);
// With all that is in it, as far as that can be: for destructors of those that made it.
void remove_folder(const std::string& path) noexcept;

}  // namespace skillet
