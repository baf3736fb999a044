#include "capture/packed_file.h"

#include <xxhash.h>

#include <algorithm>

#include "base/zstd_frame.h"

namespace skillet::capture {
namespace {

constexpr uint32_t kEndKind = 0;

struct RecordHeader {
  uint32_t kind = 0;
  uint32_t reserved = 0;
  uint64_t unpacked_bytes = 0;
  uint64_t packed_bytes = 0;
  uint64_t checksum = 0;  // XXH64 of the three fields above (as the seed) and of the packed bytes
};
static_assert(sizeof(RecordHeader) == 32);

constexpr size_t kFileHeaderBytes = 12;  // magic, version

uint64_t checksum_of(const RecordHeader& header, std::span<const uint8_t> packed) {
  const uint64_t seed = XXH64(&header, offsetof(RecordHeader, checksum), 0);
  return XXH64(packed.data(), packed.size(), seed);
}

void append(Bytes& out, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

Result<void> append_record(Bytes& out, uint32_t kind, std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const Bytes packed, pack_zstd(bytes));
  RecordHeader header{.kind = kind, .unpacked_bytes = bytes.size(), .packed_bytes = packed.size()};
  header.checksum = checksum_of(header, packed);
  append(out, &header, sizeof header);
  append(out, packed.data(), packed.size());
  return {};
}

// Cuts one record off the front of `rest`; `budget` is what may still be unpacked.
Result<PackedRecord> next_record(std::span<const uint8_t>& rest, uint64_t& budget) {
  RecordHeader header;
  if (rest.size() < sizeof header) return error(ErrorCode::malformed, "truncated: no end record");
  std::memcpy(&header, rest.data(), sizeof header);
  rest = rest.subspan(sizeof header);
  if (header.packed_bytes > rest.size())
    return error(ErrorCode::malformed, "truncated: {} bytes announced, {} are left", header.packed_bytes, rest.size());
  if (header.unpacked_bytes > budget)
    return error(ErrorCode::malformed, "unpacks to {} bytes, more than the limit", header.unpacked_bytes);
  const std::span<const uint8_t> packed = rest.first(header.packed_bytes);
  if (checksum_of(header, packed) != header.checksum) return error(ErrorCode::malformed, "checksum mismatch");
  rest = rest.subspan(header.packed_bytes);
  budget -= header.unpacked_bytes;
  SK_TRY_ASSIGN(Bytes bytes, unpack_zstd(packed, header.unpacked_bytes));
  return PackedRecord{header.kind, std::move(bytes)};
}

Result<void> check_file_header(const PackedFormat& format, std::span<const uint8_t> file) {
  if (!has_magic(format, file)) return error(ErrorCode::malformed, "not a skillet {} file", format.what);
  if (file.size() < kFileHeaderBytes) return error(ErrorCode::malformed, "truncated {} file", format.what);
  const auto version = load_le<uint32_t>(file.data() + format.magic.size());
  if (version != format.version)
    return error(ErrorCode::unsupported, "{} file of version {}; this build reads version {}", format.what, version,
                 format.version);
  return {};
}

}  // namespace

bool has_magic(const PackedFormat& format, std::span<const uint8_t> file) {
  return file.size() >= format.magic.size() && std::equal(format.magic.begin(), format.magic.end(), file.begin());
}

Bytes pack_file_header(const PackedFormat& format) {
  Bytes out;
  append(out, format.magic.data(), format.magic.size());
  append(out, &format.version, sizeof format.version);
  return out;
}

Result<void> append_packed_record(Bytes& out, const PackedRecord& record) {
  return append_record(out, record.kind, record.bytes);
}

Result<Bytes> pack_records(const PackedFormat& format, std::span<const PackedRecord> records) {
  Bytes out = pack_file_header(format);
  uint64_t total = 0;
  for (const PackedRecord& record : records) {
    total += record.bytes.size();
    if (total > format.limit_bytes)
      return error(ErrorCode::out_of_range, "a {} file holds at most {} bytes", format.what, format.limit_bytes);
    SK_TRY(append_record(out, record.kind, record.bytes));
  }
  SK_TRY(append_record(out, kEndKind, {}));
  return out;
}

Result<std::vector<PackedRecord>> unpack_records(const PackedFormat& format, std::span<const uint8_t> file) {
  SK_TRY(check_file_header(format, file));
  std::span<const uint8_t> rest = file.subspan(kFileHeaderBytes);
  uint64_t budget = format.limit_bytes;
  std::vector<PackedRecord> records;
  while (true) {
    auto record = next_record(rest, budget);
    if (!record.ok()) return std::move(record).error().with_context(fmt::format("record {}", records.size()));
    if (record->kind == kEndKind) break;
    records.push_back(std::move(record).value());
  }
  if (!rest.empty()) return error(ErrorCode::malformed, "{} bytes after the end record", rest.size());
  return records;
}

}  // namespace skillet::capture
