#include "frontend/onnx/port.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>

namespace skillet::onnx {
namespace {

constexpr int64_t kRun = 256;  // elements per conversion
constexpr int64_t kMostElems = int64_t{1} << 31;
constexpr int kMostZeroPoint = 1024;
constexpr size_t kMostRank = 64;

struct Steps {
  float scale, low, high;
  int32_t zero_point;
};

// Rounds halves to even as the host does: a float sum beyond 2^23 has no fraction. Values out of range are clamped
// first.
uint8_t step_of(float real, const Steps& steps) {
  constexpr float kNoFraction = 12582912.0F;
  float value = real / steps.scale;
  value = value > steps.low ? value : steps.low;  // NaN too
  value = value < steps.high ? value : steps.high;
  return static_cast<uint8_t>(static_cast<int32_t>((value + kNoFraction) - kNoFraction) + steps.zero_point);
}

// The inner loop has a fixed length and its own output buffer, so that compilers vectorise it.
void quantize(const Port& port, const float* from, uint8_t* to, int64_t count) {
  constexpr int64_t kBlock = 16;
  const int least = port.is_signed ? -128 : 0;
  const Steps steps{port.scale, static_cast<float>(least - port.zero_point),
                    static_cast<float>(least + 255 - port.zero_point), port.zero_point};
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    std::array<uint8_t, kBlock> block;
    for (size_t k = 0; k < block.size(); ++k) block[k] = step_of(from[i + static_cast<int64_t>(k)], steps);
    std::memcpy(to + i, block.data(), block.size());
  }
  for (; i < count; ++i) to[i] = step_of(from[i], steps);
}

void dequantize(const Port& port, const uint8_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t stored = port.is_signed ? static_cast<int8_t>(from[i]) : from[i];
    to[i] = static_cast<float>(stored - port.zero_point) * port.scale;
  }
}

// Reads `count` elements of the host's tensor from index `at` on.
void read(const Port& port, const void* from, int64_t at, uint8_t* to, int64_t count) {
  if (port.is_float) return quantize(port, static_cast<const float*>(from) + at, to, count);
  const auto* bytes = static_cast<const uint8_t*>(from) + at;
  const uint8_t flip = port.flips ? 0x80 : 0;
  for (int64_t i = 0; i < count; ++i) to[i] = bytes[i] ^ flip;
}

void write(const Port& port, const uint8_t* from, void* to, int64_t at, int64_t count) {
  if (port.is_float) return dequantize(port, from, static_cast<float*>(to) + at, count);
  auto* bytes = static_cast<uint8_t*>(to) + at;
  const uint8_t flip = port.flips ? 0x80 : 0;
  for (int64_t i = 0; i < count; ++i) bytes[i] = from[i] ^ flip;
}

// Calls f(index in the host's tensor, index in the session's, count) for runs of the host's tensor; in the session's
// tensor their elements are `c` apart.
template <typename F>
void for_each_run(const Port& port, F&& f) {
  for (int64_t image = 0; image < port.n; ++image) {
    const int64_t base = image * port.c * port.hw;
    for (int64_t pixel = 0; pixel < port.hw; pixel += kRun) {
      const int64_t count = std::min(kRun, port.hw - pixel);
      for (int64_t channel = 0; channel < port.c; ++channel)
        f(base + channel * port.hw + pixel, base + pixel * port.c + channel, count);
    }
  }
}

std::optional<int64_t> product(std::span<const int64_t> sizes) {
  int64_t out = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMostElems / out) return std::nullopt;
    out *= size;
  }
  return out;
}

// Example: "in 1 3 64 0 0 3c23d70a 5 0 1 3 8 8"
std::string line_of(const char* side, const Port& port) {
  return fmt::format("{} {} {} {} {} {} {:x} {} {} {}\n", side, port.n, port.c, port.hw, int{port.is_float},
                     int{port.flips}, std::bit_cast<uint32_t>(port.scale), port.zero_point, port.session_port,
                     fmt::join(port.dims, " "));
}

Result<Port> port_of(std::istringstream& line, const ir::Graph& graph, const std::vector<ir::TensorId>& ids) {
  const Error wrong = error(ErrorCode::malformed, "its inputs and outputs differ from those of its graph");
  Port port;
  uint32_t scale = 0;
  line >> port.n >> port.c >> port.hw >> port.is_float >> port.flips >> std::hex >> scale >> std::dec >>
      port.zero_point >> port.session_port;
  if (!line || port.session_port >= ids.size()) return wrong;
  for (int64_t size = 0; port.dims.size() < kMostRank && line >> size;) port.dims.push_back(size);
  const ir::Tensor& tensor = graph.tensor(ids[port.session_port]);
  const auto elems = product(std::array{port.n, port.c, port.hw});
  port.scale = std::bit_cast<float>(scale);
  port.is_signed = tensor.dtype == ir::DType::int8;
  const bool fits = elems && elems == product(port.dims) && *elems == tensor.shape.elems() &&
                    ir::is_8bit(tensor.dtype) && std::isfinite(port.scale) && port.scale > 0 &&
                    std::abs(int64_t{port.zero_point}) < kMostZeroPoint;
  return fits ? Result<Port>(std::move(port)) : wrong;
}

}  // namespace

void copy_in(const Port& port, const void* from, std::span<uint8_t> to) {
  if (port.c == 1 || port.hw == 1) return read(port, from, 0, to.data(), port.elems());
  std::array<uint8_t, kRun> run;
  for_each_run(port, [&](int64_t host, int64_t own, int64_t count) {
    read(port, from, host, run.data(), count);
    for (int64_t i = 0; i < count; ++i) to[static_cast<size_t>(own + i * port.c)] = run[static_cast<size_t>(i)];
  });
}

void copy_out(const Port& port, std::span<const uint8_t> from, void* to) {
  if (port.c == 1 || port.hw == 1) return write(port, from.data(), to, 0, port.elems());
  std::array<uint8_t, kRun> run;
  for_each_run(port, [&](int64_t host, int64_t own, int64_t count) {
    for (int64_t i = 0; i < count; ++i) run[static_cast<size_t>(i)] = from[static_cast<size_t>(own + i * port.c)];
    write(port, run.data(), to, host, count);
  });
}

std::string note_of(std::span<const Port> inputs, std::span<const Port> outputs) {
  std::string out;
  for (const Port& port : inputs) out += line_of("in", port);
  for (const Port& port : outputs) out += line_of("out", port);
  return out;
}

Result<Ports> ports_of(const std::string& note, const ir::Graph& graph) {
  Ports out;
  std::set<size_t> given, read;
  std::istringstream lines(note);
  for (std::string text; std::getline(lines, text);) {
    std::istringstream line(text);
    std::string side;
    line >> side;
    const bool is_input = side == "in";
    SK_TRY_ASSIGN(Port port, port_of(line, graph, is_input ? graph.inputs : graph.outputs));
    (is_input ? given : read).insert(port.session_port);
    (is_input ? out.inputs : out.outputs).push_back(std::move(port));
  }
  // Unused outputs have no port.
  if (out.inputs.size() != graph.inputs.size() || given.size() != graph.inputs.size() || read.empty())
    return error(ErrorCode::malformed, "an input of its graph is missing, or it has no output");
  return out;
}

}  // namespace skillet::onnx
