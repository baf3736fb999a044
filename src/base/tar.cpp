#include "base/tar.h"

#include <numeric>

namespace skillet {
namespace {

constexpr size_t kBlockBytes = 512;

void put(std::span<uint8_t> header, size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

// POSIX ustar: numbers in octal; the checksum of the header's bytes counts its own field as blanks.
Bytes header_of(const std::string& name, size_t size_bytes) {
  constexpr size_t kNameBytes = 100, kMode = 100, kUser = 108, kGroup = 116, kSize = 124, kTime = 136, kSum = 148,
                   kType = 156, kMagic = 257;
  Bytes header(kBlockBytes);
  put(header, 0, std::string_view(name).substr(0, kNameBytes));
  put(header, kMode, "0000644");
  put(header, kUser, "0000000");
  put(header, kGroup, "0000000");
  put(header, kSize, fmt::format("{:011o}", size_bytes));
  put(header, kTime, "00000000000");
  put(header, kSum, "        ");
  put(header, kType, "0");
  put(header, kMagic,
      std::string_view("ustar\0"
                       "00",
                       8));
  put(header, kSum, fmt::format("{:06o}", std::accumulate(header.begin(), header.end(), 0U)));
  header[kSum + 6] = 0;
  return header;
}

}  // namespace

Bytes tar(const std::vector<NamedFile>& files) {
  Bytes out;
  for (const auto& [name, bytes] : files) {
    const Bytes header = header_of(name, bytes.size());
    out.insert(out.end(), header.begin(), header.end());
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.resize((out.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  }
  out.resize(out.size() + 2 * kBlockBytes);
  return out;
}

}  // namespace skillet
