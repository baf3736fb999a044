// PackedFile: magic, version, then checksummed zstd records; the outer shell of capture files and program files.
// Called by capture/capture_file and driver/program_file.
// Must not know: what the records hold. format.md describes the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::capture {

struct PackedFormat {
  std::array<char, 8> magic;
  uint32_t version = 1;
  std::string_view what;     // "capture": for messages
  uint64_t limit_bytes = 0;  // of all records together, unpacked
};

struct PackedRecord {
  uint32_t kind = 0;  // 0 is the end record, which the shell writes itself
  Bytes bytes;
};

Result<Bytes> pack_records(const PackedFormat& format, std::span<const PackedRecord> records);
// The parts of such a file, for one that grows: what it starts with, then records, the end record (kind 0) last.
Bytes pack_file_header(const PackedFormat& format);
Result<void> append_packed_record(Bytes& out, const PackedRecord& record);
Result<std::vector<PackedRecord>> unpack_records(const PackedFormat& format, std::span<const uint8_t> file);
// True when `file` starts with the format's magic.
bool has_magic(const PackedFormat& format, std::span<const uint8_t> file);

}  // namespace skillet::capture
