// Coefficient buffers of the V8 generation from fuzz bytes: the decoder must answer every one in bounded time and
// memory, and what it accepts must be whole.
//
// Bytes 0..7 are the shape, 8..15 the symbol map and which header bytes to break; the rest are the streams.
#include <cstdio>
#include <cstdlib>
#include <span>

#include "base/bytes.h"
#include "sim/vivante/nn_coefficients.h"

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

// A header that is right apart from what the fuzzer breaks; the streams share the data out among the cores.
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
    const uint32_t unused_bits = core % 4 < broken.size() ? broken[core % 4] * 2U : 0;
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

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < kPreludeBytes) return 0;
  const std::span<const uint8_t> data(bytes, size);
  const vivante::CoefficientShape shape = make_shape(data);
  Bytes buffer = make_buffer(data, shape);
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
