#include "recorded_memory.h"

#include <algorithm>

#include "base/int_math.h"

namespace skillet::rockchip_replay {
namespace {

constexpr size_t kAtom = 16;
constexpr uint64_t kPageBytes = 4096;

}  // namespace

Result<void> RecordedMemory::add(const capture::Submission& submission) {
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (buffer.address == 0 || buffers_.contains(buffer.address)) continue;
    Bytes bytes(buffer.bytes.begin(), buffer.bytes.end());
    bytes.resize(align_up(buffer.size_bytes, kPageBytes));
    Bytes& kept = buffers_[buffer.address] = std::move(bytes);
    SK_TRY(memory_.map(buffer.address, kept, fmt::format("buffer {}", buffer.handle)));
  }
  return {};
}

Result<void> RecordedMemory::write_cube(uint64_t address, std::span<const uint8_t> nhwc, size_t channels,
                                        uint8_t zero_point) {
  const size_t pixels = nhwc.size() / channels;
  const size_t surfaces = ceil_div(channels, kAtom);
  SK_TRY_ASSIGN(const std::span<uint8_t> to, memory_.at(address, surfaces * pixels * kAtom, "input"));
  for (size_t surface = 0; surface < surfaces; ++surface) {
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t lane = 0; lane < kAtom; ++lane) {
        const size_t c = surface * kAtom + lane;
        const uint8_t u = c < channels ? nhwc[p * channels + c] : zero_point;
        to[(surface * pixels + p) * kAtom + lane] = u ^ 0x80;
      }
    }
  }
  return {};
}

Result<void> RecordedMemory::write_packed(uint64_t address, std::span<const uint8_t> rows, size_t width,
                                          uint8_t zero_point) {
  const size_t pitch = std::max(width, kAtom);
  SK_TRY_ASSIGN(const std::span<uint8_t> to, memory_.at(address, rows.size() / width * pitch, "input"));
  std::fill(to.begin(), to.end(), zero_point);
  for (size_t at = 0, row = 0; at < rows.size(); at += width, ++row)
    std::copy_n(rows.begin() + static_cast<ptrdiff_t>(at), width, to.begin() + static_cast<ptrdiff_t>(row * pitch));
  return {};
}

Result<Bytes> RecordedMemory::read_cube(uint64_t address, size_t pixels, size_t channels, size_t surface_pixels) const {
  Bytes nhwc(pixels * channels);
  for (size_t first = 0; first < channels; first += kAtom) {
    const uint64_t surface = address + first / kAtom * surface_pixels * kAtom;
    SK_TRY_ASSIGN(const std::span<uint8_t> from, memory_.at(surface, pixels * kAtom, "output"));
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t lane = 0; lane < kAtom && first + lane < channels; ++lane)
        nhwc[p * channels + first + lane] = from[p * kAtom + lane] ^ 0x80;
    }
  }
  return nhwc;
}

}  // namespace skillet::rockchip_replay
