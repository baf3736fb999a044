// Zip archives in NumPy's form (.npz): reads stored and deflated members, writes stored ones.
// Called by tensor_file.
// Must not know: contents of members.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::tools {

uint32_t crc32(std::span<const uint8_t> bytes);

struct ZipMember {
  std::string name;
  std::span<const uint8_t> packed;  // in the file
  bool is_deflated = false;
  uint32_t size_bytes = 0, crc = 0;
};

bool is_zip(std::span<const uint8_t> file);
// Checks all of the archive's directory against the file. Errors name the member.
Result<std::vector<ZipMember>> zip_members(std::span<const uint8_t> file);
// Error: the member has more than `limit_bytes`. Never unpacks more, whatever size the archive declares.
Result<Bytes> unpack(const ZipMember& member, uint64_t limit_bytes);

struct ZipEntry {
  std::string name;
  Bytes bytes;
};
Result<Bytes> zip_of(std::span<const ZipEntry> entries);

}  // namespace skillet::tools
