#include "npus/vivante/compiler/filters.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "npus/vivante/compiler/weights.h"

namespace skillet::npus::vivante {
namespace {

// The model's filter: [OC][KH][KW][IC], or [1][KH][KW][OC] for depthwise.
struct Source {
  std::span<const uint8_t> bytes;
  ConvShape shape;
  uint8_t flip = 0;  // 0x80 makes int8 unsigned
  uint8_t fill = 0;  // the byte of taps that are not in the model's filter

  // Distance from one input channel to the next, and from one tap to the next.
  int64_t tap_stride() const { return shape.depthwise ? shape.out.channels : shape.in.channels; }
  const uint8_t* tap(int32_t oc, int32_t channel, int32_t row, int32_t column) const {
    const int64_t tap_index = int64_t{row} * shape.kernel_width + column;
    if (shape.depthwise) return bytes.data() + tap_index * tap_stride() + oc;
    return bytes.data() + (int64_t{oc} * shape.kernel_height * shape.kernel_width + tap_index) * tap_stride() + channel;
  }
};

// The tap of the model's filter at each place of a lowered filter; -1: the zero point.
// Index: [plane of space-to-depth][row * width + column].
std::vector<std::vector<int32_t>> tap_table(const ConvShape& s, const Kernels& k, FilterTransform transform) {
  const bool s2d = transform == FilterTransform::space_to_depth;
  std::vector<std::vector<int32_t>> table;
  for (int32_t plane = 0; plane < (s2d ? 4 : 1); ++plane) {
    std::vector<int32_t> taps;
    for (int32_t position = 0; position < k.patch_elems(); ++position) {
      const int32_t row = position / k.width * (s2d ? 2 : 1) + plane / 2;
      const int32_t column = position % k.width * (s2d ? 2 : 1) + plane % 2;
      taps.push_back(row < s.kernel_height && column < s.kernel_width ? row * s.kernel_width + column : -1);
    }
    table.push_back(std::move(taps));
  }
  return table;
}

void keep(Kernels& k, std::shared_ptr<const Bytes> lowered) {
  k.weights = *lowered;
  k.lowered = std::move(lowered);
}

// The model's order is also the order of the job.
void take_weights(const Source& source, Kernels& k) {
  k.weights = source.bytes;
  if (source.flip == 0) return;
  auto flipped = std::make_shared<Bytes>(source.bytes.begin(), source.bytes.end());
  for (uint8_t& byte : *flipped) byte ^= source.flip;
  keep(k, std::move(flipped));
}

void copy_weights(const Source& source, Kernels& k, FilterTransform transform) {
  const auto taps = tap_table(source.shape, k, transform);
  const int32_t channels = source.shape.depthwise ? 1 : source.shape.in.channels;
  auto lowered = std::make_shared<Bytes>(static_cast<size_t>(int64_t{k.output_channels} * k.band * k.patch_elems()));
  uint8_t* to = lowered->data();
  for (int32_t oc = 0; oc < k.output_channels; ++oc) {
    for (int32_t c = 0; c < channels; ++c) {
      const uint8_t* from = source.tap(oc, c, 0, 0);
      for (const auto& plane : taps) {
        for (const int32_t tap : plane)
          *to++ = tap < 0 ? source.fill : static_cast<uint8_t>(from[tap * source.tap_stride()] ^ source.flip);
      }
    }
  }
  keep(k, std::move(lowered));
}

bool is_plain_order(const ConvShape& s, FilterTransform transform) {
  if (transform == FilterTransform::linear) return true;
  return transform == FilterTransform::none && s.kernel_height == 1 && s.kernel_width == 1 && !s.depthwise;
}

uint64_t sum_of(std::span<const uint8_t> bytes) {
  constexpr size_t kChunk = size_t{1} << 24;  // the 32-bit sum of a chunk cannot overflow
  uint64_t sum = 0;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kChunk, bytes.size()))) {
    uint32_t part = 0;
    for (const uint8_t byte : bytes.first(std::min(kChunk, bytes.size()))) part += byte;
    sum += part;
  }
  return sum;
}

// The bias of kernels that only fill up the count: as recorded, it belongs to weight bytes of 0 and a bias of 0.
int32_t filler_bias(const Kernels& k, int64_t center_offset) {
  const int64_t elems = int64_t{k.input_channels} * k.patch_elems();
  return static_cast<int32_t>(static_cast<uint32_t>(-elems * k.zero_point * center_offset));
}

// The chip multiplies pixel - center with weight - zero point; the bias corrects for the difference between center and
// the input's zero point, modulo 2^32.
void fold_biases(Kernels& k, const std::vector<int32_t>& biases, int64_t center_offset) {
  const auto per_kernel = static_cast<size_t>(int64_t{k.band} * k.patch_elems());
  for (int32_t oc = 0; oc < k.output_channels; ++oc) {
    const uint64_t sum = sum_of(k.weights.subspan(static_cast<size_t>(oc) * per_kernel, per_kernel));
    const auto deviation = static_cast<int64_t>(sum) - static_cast<int64_t>(per_kernel) * k.zero_point;
    const int64_t bias = biases.empty() ? 0 : biases[static_cast<size_t>(oc)];
    k.biases.push_back(static_cast<int32_t>(static_cast<uint32_t>(bias + deviation * center_offset)));
  }
  k.filler_bias = filler_bias(k, center_offset);
}

}  // namespace

Kernels make_kernels(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id, const ConvShape& shape,
                     FilterTransform transform, SignedBytes signed_bytes) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& filter = graph.tensor(op.input(1));
  const bool s2d = transform == FilterTransform::space_to_depth;
  Kernels k{.output_channels = shape.out.channels, .input_channels = shape.in.channels * (s2d ? 4 : 1)};
  k.height = s2d ? ceil_div(shape.kernel_height, 2) : shape.kernel_height;
  k.width = s2d ? ceil_div(shape.kernel_width, 2) : shape.kernel_width;
  if (transform == FilterTransform::widen_to_2x2) k.height = k.width = 2;
  k.band = (shape.depthwise ? 1 : shape.in.channels) * (s2d ? 4 : 1);
  k.kernels_per_band = shape.depthwise ? shape.multiplier : 0;
  k.zero_point = unsigned_zero_point(filter);
  k.model_xor = xor_byte(filter.dtype);
  const bool raised = signed_bytes == SignedBytes::raised || k.model_xor == 0;
  Source source{filter.data, shape, k.model_xor, k.zero_point};
  if (!raised) source.fill ^= std::exchange(source.flip, uint8_t{0});
  if (is_plain_order(shape, transform))
    take_weights(source, k);
  else
    copy_weights(source, k, transform);
  if (!raised) k = without_bands(k, source.fill);
  const std::vector<int32_t> biases =
      op.input(2) == ir::kNoTensor ? std::vector<int32_t>{} : graph.tensor(op.input(2)).values<int32_t>();
  fold_biases(k, biases, hw::generation_of(chip).pixel_center - unsigned_zero_point(graph.tensor(op.input(0))));
  return k;
}

Kernels channel_part(const Kernels& all, int32_t part, int32_t parts, int64_t center_offset) {
  Kernels k = all;
  k.output_channels /= parts;
  k.input_channels /= parts;
  const auto kernels = static_cast<size_t>(k.output_channels), first = kernels * static_cast<size_t>(part);
  const auto per_kernel = static_cast<size_t>(int64_t{k.band} * k.patch_elems());
  k.weights = all.weights.subspan(first * per_kernel, kernels * per_kernel);
  k.biases.assign(all.biases.begin() + static_cast<std::ptrdiff_t>(first),
                  all.biases.begin() + static_cast<std::ptrdiff_t>(first + kernels));
  k.filler_bias = filler_bias(k, center_offset);
  return k;
}

}  // namespace skillet::npus::vivante
