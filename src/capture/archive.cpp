#include "capture/archive.h"

namespace skillet::capture {

void ArchiveWriter::raw(std::span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

void ArchiveWriter::text(std::string_view field, const std::string& value) {
  number(field, static_cast<uint64_t>(value.size()));
  raw({reinterpret_cast<const uint8_t*>(value.data()), value.size()});
}

void ArchiveWriter::blob(std::string_view field, const Bytes& value) {
  number(field, static_cast<uint64_t>(value.size()));
  raw(value);
}

void ArchiveWriter::words(std::string_view field, const std::vector<uint32_t>& value) {
  number(field, static_cast<uint64_t>(value.size()));
  raw(as_bytes(value));
}

void ArchiveReader::flag(std::string_view field, bool& value) {
  uint8_t number_value = 0;
  number(field, number_value);
  if (number_value > 1) fail(error(ErrorCode::malformed, "{}: {} is neither 0 nor 1", field, number_value));
  value = number_value == 1;
}

void ArchiveReader::text(std::string_view field, std::string& value) {
  const std::span<const uint8_t> taken = take(field, length(field, 1));
  value.assign(reinterpret_cast<const char*>(taken.data()), taken.size());
}

void ArchiveReader::blob(std::string_view field, Bytes& value) {
  const std::span<const uint8_t> taken = take(field, length(field, 1));
  value.assign(taken.begin(), taken.end());
}

void ArchiveReader::words(std::string_view field, std::vector<uint32_t>& value) {
  const std::span<const uint8_t> taken = take(field, length(field, 4));
  value.resize(taken.size() / 4);
  if (!taken.empty()) std::memcpy(value.data(), taken.data(), taken.size());
}

Result<void> ArchiveReader::finish() const {
  if (error_) return *error_;
  if (!bytes_.empty()) return error(ErrorCode::malformed, "{} bytes are left over at the end", bytes_.size());
  return {};
}

std::span<const uint8_t> ArchiveReader::take(std::string_view field, uint64_t size) {
  if (!ok() || size == 0) return {};
  if (size > bytes_.size()) {
    fail(error(ErrorCode::malformed, "{}: needs {} bytes, {} are left", field, size, bytes_.size()));
    return {};
  }
  const std::span<const uint8_t> taken = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return taken;
}

// Reads a count of `unit`-byte items and returns their size in bytes, which the rest of the data can hold.
uint64_t ArchiveReader::length(std::string_view field, uint64_t unit) {
  uint64_t count = 0;
  number(field, count);
  if (count <= bytes_.size() / unit) return count * unit;
  fail_count(field, count);
  return 0;
}

void ArchiveReader::fail(Error e) {
  if (!error_) error_ = std::move(e);
  bytes_ = {};
}

void ArchiveReader::fail_count(std::string_view field, uint64_t count) {
  fail(error(ErrorCode::malformed, "{}: a count of {} is more than the {} bytes left can hold", field, count,
             bytes_.size()));
}

}  // namespace skillet::capture
