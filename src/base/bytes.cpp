#include "base/bytes.h"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace skillet {

static_assert(std::endian::native == std::endian::little, "load_le/store_le assume a little-endian host");

namespace {
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
}

Result<Bytes> read_file(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) return error(ErrorCode::io, "{}: is a folder, not a file", path);
  File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  Bytes bytes;
  uint8_t chunk[65536];
  size_t got = 0;
  while ((got = std::fread(chunk, 1, sizeof chunk, file.get())) > 0) bytes.insert(bytes.end(), chunk, chunk + got);
  if (std::ferror(file.get())) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  return bytes;
}

Result<void> write_file(const std::string& path, std::span<const uint8_t> bytes) {
  File file(std::fopen(path.c_str(), "wb"), &std::fclose);
  if (!file) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (std::fclose(file.release()) == 0 && written) return {};
  const Error failure = error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  std::error_code ec;
  // No half of a file stays; what a link or device leads to does.
  if (std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ec))) std::filesystem::remove(path, ec);
  return failure;
}

}  // namespace skillet
