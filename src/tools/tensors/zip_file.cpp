#include "tools/tensors/zip_file.h"

#include <algorithm>
#include <array>
#include <set>

#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include "base/text.h"

namespace skillet::tools {
namespace {

constexpr uint32_t kLocalMark = 0x04034B50, kCentralMark = 0x02014B50, kEndMark = 0x06054B50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMaxCommentBytes = 0xFFFF;
constexpr uint16_t kVersion = 20, kDeflated = 8, kEncrypted = 1;
constexpr uint32_t kInZip64 = 0xFFFFFFFF;

uint32_t word(std::span<const uint8_t> file, size_t at) { return load_le<uint32_t>(file.data() + at); }
uint16_t half(std::span<const uint8_t> file, size_t at) { return load_le<uint16_t>(file.data() + at); }

struct Directory {
  size_t at = 0, entries = 0;
};

// The end record is at the end of the file, followed only by a comment.
Result<Directory> find_directory(std::span<const uint8_t> file) {
  const size_t lowest = file.size() > kEndBytes + kMaxCommentBytes ? file.size() - kEndBytes - kMaxCommentBytes : 0;
  for (size_t at = file.size() < kEndBytes ? 0 : file.size() - kEndBytes + 1; at-- > lowest;) {
    if (word(file, at) != kEndMark) continue;
    const Directory found{word(file, at + 16), half(file, at + 10)};
    if (found.at > at) return error(ErrorCode::malformed, "zip archive: its table of contents is outside the file");
    return found;
  }
  return error(ErrorCode::malformed, "zip archive without a table of contents: cut off?");
}

// The bytes after the member's own header, whose name and extra fields may have other lengths than in the directory.
Result<std::span<const uint8_t>> packed_bytes(std::span<const uint8_t> file, std::string_view name, size_t at,
                                              uint32_t size) {
  const Error outside = error(ErrorCode::malformed, "'{}' is outside the file", name);
  if (at > file.size() || file.size() - at < kLocalBytes || word(file, at) != kLocalMark) return outside;
  const size_t start = at + kLocalBytes + half(file, at + 26) + half(file, at + 28);
  if (start > file.size() || file.size() - start < size) return outside;
  return file.subspan(start, size);
}

Result<ZipMember> member_at(std::span<const uint8_t> file, size_t at) {
  const auto entry = file.subspan(at);
  const size_t name_bytes = half(entry, 28);
  if (entry.size() - kCentralBytes < name_bytes) return error(ErrorCode::malformed, "zip archive: a name is cut off");
  ZipMember out{.name = std::string(entry.begin() + kCentralBytes, entry.begin() + kCentralBytes + name_bytes),
                .packed = {},
                .is_deflated = half(entry, 10) == kDeflated,
                .size_bytes = word(entry, 24),
                .crc = word(entry, 16)};
  const uint32_t packed = word(entry, 20), offset = word(entry, 42);
  if (half(entry, 8) & kEncrypted) return error(ErrorCode::unsupported, "'{}' is encrypted", out.name);
  if (half(entry, 10) != 0 && !out.is_deflated)
    return error(ErrorCode::unsupported, "'{}' is packed by method {}", out.name, half(entry, 10));
  if (packed == kInZip64 || out.size_bytes == kInZip64 || offset == kInZip64)
    return error(ErrorCode::unsupported, "'{}' has 4 GiB or more", out.name);
  SK_TRY_ASSIGN(out.packed, packed_bytes(file, out.name, offset, packed));
  return out;
}

Result<Bytes> inflated(const ZipMember& member) {
  // stb takes an end within its last two bytes for truncated data: in a PNG a checksum follows.
  constexpr size_t kBehind = 4;
  if (member.packed.size() > INT32_MAX - kBehind || member.size_bytes > INT32_MAX)
    return error(ErrorCode::unsupported, "'{}' is larger than 2 GiB", member.name);
  Bytes packed(member.packed.begin(), member.packed.end());
  packed.resize(packed.size() + kBehind);
  Bytes out(std::max<size_t>(member.size_bytes, 1));  // stb never writes more
  const int size =
      stbi_zlib_decode_noheader_buffer(reinterpret_cast<char*>(out.data()), static_cast<int>(out.size()),
                                       reinterpret_cast<const char*>(packed.data()), static_cast<int>(packed.size()));
  if (size < 0)
    return error(ErrorCode::malformed, "'{}' does not unpack to the {} bytes it announces", member.name,
                 member.size_bytes);
  out.resize(static_cast<size_t>(size));
  return out;
}

template <typename T>
void append(Bytes& out, T value) {
  out.resize(out.size() + sizeof value);
  store_le(out.data() + out.size() - sizeof value, value);
}

void append_text(Bytes& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<uint8_t>(c));
}

// Fields that a member's header and its directory row share. No time: equal arrays give equal files.
void append_common(Bytes& out, const ZipEntry& entry) {
  constexpr uint16_t kNameIsUtf8 = 1 << 11;
  constexpr uint16_t kFirstDay = 1 << 5 | 1;  // 1980-01-01
  append<uint16_t>(out, kVersion);
  append<uint16_t>(out, is_utf8(entry.name) ? kNameIsUtf8 : 0);
  append<uint16_t>(out, 0);  // method: stored
  append<uint16_t>(out, 0);
  append<uint16_t>(out, kFirstDay);
  append<uint32_t>(out, crc32(entry.bytes));
  append<uint32_t>(out, static_cast<uint32_t>(entry.bytes.size()));
  append<uint32_t>(out, static_cast<uint32_t>(entry.bytes.size()));
  append<uint16_t>(out, static_cast<uint16_t>(entry.name.size()));
  append<uint16_t>(out, 0);  // extra
}

void append_row(Bytes& out, const ZipEntry& entry, uint32_t offset) {
  append<uint32_t>(out, kCentralMark);
  append<uint16_t>(out, kVersion);
  append_common(out, entry);
  append<uint64_t>(out, 0);  // comment, disk, attributes
  append<uint16_t>(out, 0);
  append<uint32_t>(out, offset);
  append_text(out, entry.name);
}

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
    out[i] = crc;
  }
  return out;
}();

}  // namespace

uint32_t crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0U;
  for (const uint8_t byte : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ byte) & 0xFF];
  return ~crc;
}

bool is_zip(std::span<const uint8_t> file) {
  return file.size() >= kEndBytes && (word(file, 0) == kLocalMark || word(file, 0) == kEndMark);
}

Result<std::vector<ZipMember>> zip_members(std::span<const uint8_t> file) {
  SK_TRY_ASSIGN(const Directory directory, find_directory(file));
  std::vector<ZipMember> out;
  std::set<std::string> names;
  size_t at = directory.at;
  for (size_t i = 0; i < directory.entries; ++i) {
    if (file.size() - at < kCentralBytes || word(file, at) != kCentralMark)
      return error(ErrorCode::malformed, "zip archive: entry {} of {} is damaged or cut off", i, directory.entries);
    SK_TRY_ASSIGN(ZipMember member, member_at(file, at));
    // Programs differ in which of two equal names they read.
    if (!names.insert(member.name).second)
      return error(ErrorCode::malformed, "zip archive: '{}' is in it twice", member.name);
    out.push_back(std::move(member));
    const size_t row = kCentralBytes + half(file, at + 28) + half(file, at + 30) + half(file, at + 32);
    if (file.size() - at < row) return error(ErrorCode::malformed, "zip archive: entry {} is cut off", i);
    at += row;
  }
  return out;
}

Result<Bytes> unpack(const ZipMember& member, uint64_t limit_bytes) {
  if (member.size_bytes > limit_bytes)
    return error(ErrorCode::malformed, "'{}' announces {} bytes; at most {} are allowed", member.name,
                 member.size_bytes, limit_bytes);
  Bytes out(member.packed.begin(), member.packed.end());
  if (member.is_deflated) SK_TRY_INTO(out, inflated(member));
  if (out.size() != member.size_bytes)
    return error(ErrorCode::malformed, "'{}' has {} bytes but announces {}", member.name, out.size(),
                 member.size_bytes);
  if (crc32(out) != member.crc) return error(ErrorCode::malformed, "'{}' is damaged: wrong checksum", member.name);
  return out;
}

Result<Bytes> zip_of(std::span<const ZipEntry> entries) {
  Bytes out, table;
  for (const ZipEntry& entry : entries) {
    if (out.size() + entry.bytes.size() + table.size() > UINT32_MAX / 2 || entry.name.size() > UINT16_MAX)
      return error(ErrorCode::unsupported, "more than 2 GiB for one .npz file; write to a folder");
    append_row(table, entry, static_cast<uint32_t>(out.size()));
    append<uint32_t>(out, kLocalMark);
    append_common(out, entry);
    append_text(out, entry.name);
    out.insert(out.end(), entry.bytes.begin(), entry.bytes.end());
  }
  const auto start = static_cast<uint32_t>(out.size());
  out.insert(out.end(), table.begin(), table.end());
  append<uint32_t>(out, kEndMark);
  append<uint32_t>(out, 0);  // disks
  append<uint16_t>(out, static_cast<uint16_t>(entries.size()));
  append<uint16_t>(out, static_cast<uint16_t>(entries.size()));
  append<uint32_t>(out, static_cast<uint32_t>(table.size()));
  append<uint32_t>(out, start);
  append<uint16_t>(out, 0);  // comment
  return out;
}

}  // namespace skillet::tools
