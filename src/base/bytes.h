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

// Read-only bytes that are kept alive by their owner: a vector, a mapped file. Copies share them.
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

// The whole file, at most 2 GiB. Pipes, devices and folders are refused. Errors name the path and the cause.
Result<Bytes> read_file(const std::string& path);
// Its first bytes, or all if it has fewer.
Result<Bytes> read_file_start(const std::string& path, size_t size_bytes);
Result<void> write_file(const std::string& path, std::span<const uint8_t> bytes);
// Checks before long work: the file can be written; the folder can be read, or created; these files can be written in
// the folder (no names: any).
Result<void> check_place(const std::string& path);
Result<void> check_folder(const std::string& path);
Result<void> check_files(const std::string& folder, std::span<const std::string> names);
// Removes it with its contents, as far as possible: for destructors.
void remove_folder(const std::string& path) noexcept;

}  // namespace skillet
