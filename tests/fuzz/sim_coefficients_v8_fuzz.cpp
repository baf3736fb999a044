// Coefficient buffers of the V8 generation from fuzz bytes: the decoder must answer each in bounded time and memory,
// and what it accepts must be complete.
//
// Odd first byte: a small valid buffer, XORed with the rest of the input. Even: bytes 1..8 are the shape, 9..16 the
// symbol map and which header bytes to break; the rest are the streams.
#include <cstdio>
#include <cstdlib>
#include <span>

#include "base/bytes.h"
#include "npus/vivante/sim/nn_coefficients.h"

namespace {

using skillet::Bytes;
namespace vivante = skillet::sim::vivante;

const skillet::vivante::hw::ChipRow& kChip = *skillet::vivante::hw::find_chip("imx8mp");
constexpr size_t kShapeBytes = 8, kPreludeBytes = 16, kHeaderBytes = 64, kLineBytes = 64;

vivante::CoefficientShape make_shape(std::span<const uint8_t> data) {
  return {.kernel_width = 1 + data[0] % 15,
          .kernel_height = 1 + data[1] % 15,
          .planes = 1 + data[2] % 8 * (1 + data[3]),
          .kernels_per_core = 1 + data[4] % 127,
          .zero_point = data[5],
          .depthwise = data[6] % 2 == 1,
          .output_planes = 1 + data[7],
          .plane_bytes = 1};
}

// A valid header except for what the fuzzer breaks; the data is divided among the cores' streams.
Bytes make_buffer(std::span<const uint8_t> data, const vivante::CoefficientShape& shape) {
  Bytes buffer(kHeaderBytes);
  buffer[0] = 0x10;
  const std::span<const uint8_t> map = data.subspan(kShapeBytes, 4), broken = data.subspan(kShapeBytes + 4, 4);
  for (size_t i = 0; i < 4; ++i) buffer[20 + i] = map[i];
  const std::span<const uint8_t> streams = data.subspan(kPreludeBytes);
  const auto cores = static_cast<size_t>(std::min<int64_t>(kChip.nn_cores, shape.output_planes));
  const size_t lines = (streams.size() / kLineBytes + cores - 1) / cores;
  for (size_t core = 0; core < cores; ++core) {
    const size_t first = core * lines * kLineBytes;
    const size_t size = first < streams.size() ? std::min(lines * kLineBytes, streams.size() - first) : 0;
    const uint32_t unused_bits = broken[core % 3] * 2U + broken[3] % 2U;
    const auto bits = static_cast<uint32_t>(size * 8);
    skillet::store_le(buffer.data() + 28 + core * 4, bits > unused_bits ? bits - unused_bits : bits);
    buffer.insert(buffer.end(), streams.begin() + static_cast<ptrdiff_t>(std::min(first, streams.size())),
                  streams.begin() + static_cast<ptrdiff_t>(std::min(first + size, streams.size())));
    buffer.resize((buffer.size() + kLineBytes - 1) / kLineBytes * kLineBytes);
  }
  if (broken[3] == 0xff) buffer[broken[0] % kHeaderBytes] = broken[1];
  buffer.resize(buffer.size() + 4 * static_cast<size_t>(shape.output_planes));
  return buffer;
}

struct Scene {
  vivante::CoefficientShape shape;
  Bytes buffer;
};

// One 3x3 kernel: the example in the description of the format.
Scene patched_scene(std::span<const uint8_t> data) {
  Scene scene{.shape = {.kernel_width = 3, .kernel_height = 3, .zero_point = 3}, .buffer = Bytes(2 * kLineBytes + 4)};
  const std::pair<size_t, uint32_t> words[] = {{0, 0x10},        {20, 0x76501423}, {28, 63},
                                               {64, 0x0C91ECF3}, {68, 0x29124B00}, {128, 0x940}};
  for (const auto& [at, word] : words) skillet::store_le(scene.buffer.data() + at, word);
  for (size_t i = 0; i < std::min(data.size(), scene.buffer.size()); ++i) scene.buffer[i] ^= data[i];
  return scene;
}

Scene raw_scene(std::span<const uint8_t> data) {
  Scene scene;
  if (data.size() < kPreludeBytes) return scene;
  scene.shape = make_shape(data);
  scene.buffer = make_buffer(data, scene.shape);
  return scene;
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const auto rest = std::span(bytes, size).subspan(1);
  const auto [shape, buffer] = bytes[0] % 2 == 1 ? patched_scene(rest) : raw_scene(rest);
  if (buffer.empty()) return 0;
  const vivante::CoefficientFormat& format = vivante::kCoefficientFormatV8;
  const auto needed = format.buffer_bytes(std::span(buffer).first(kHeaderBytes), kChip, shape);
  if (!needed.ok() || *needed > static_cast<int64_t>(buffer.size())) return 0;
  const auto decoded = format.decode(std::span(buffer).first(static_cast<size_t>(*needed)), kChip, shape);
  if (!decoded.ok()) {
    require(!decoded.error().message.empty(), "an error without a message");
    return 0;
  }
  require(decoded->kernels.size() == static_cast<size_t>(shape.output_planes), "a kernel per output plane");
  std::vector<bool> seen(static_cast<size_t>(shape.output_planes));
  for (const vivante::Kernel& kernel : decoded->kernels) {
    require(kernel.output_offset < seen.size() && !seen[kernel.output_offset], "each output plane once");
    seen[kernel.output_offset] = true;
    require(kernel.weights.size() == kernel.planes.size() * static_cast<size_t>(shape.taps()), "whole planes");
  }
  return 0;
}
