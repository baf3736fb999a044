#include "vendor_halves.h"

#include <cmath>
#include <random>

#include "base/half.h"

namespace skillet::golden {
namespace {

constexpr int32_t kLanes = 8, kHalfBytes = 2;

size_t place(int32_t height, int32_t width, int32_t y, int32_t x, int32_t channel) {
  const int32_t pixel = (channel / kLanes * height + y) * width + x;
  return static_cast<size_t>((pixel * kLanes + channel % kLanes) * kHalfBytes);
}

double sum_at(const VendorOp& op, const FloatConv& conv, const Bytes& input, int32_t y, int32_t x, int32_t channel) {
  double sum = conv.bias[static_cast<size_t>(channel)];
  for (int32_t ic = 0; ic < op.in_channels; ++ic) {
    for (int32_t tap = 0; tap < op.kernel_height * op.kernel_width; ++tap) {
      const int32_t row = y * op.stride_y + tap / op.kernel_width - op.pad_top,
                    column = x * op.stride_x + tap % op.kernel_width - op.pad_left;
      if (row < 0 || row >= op.in_height || column < 0 || column >= op.in_width) continue;
      const auto weight =
          static_cast<size_t>((channel * op.in_channels + ic) * op.kernel_height * op.kernel_width + tap);
      sum += double{conv.weights[weight]} *
             float_of_half(load_le<uint16_t>(input.data() + place(op.in_height, op.in_width, row, column, ic)));
    }
  }
  return sum;
}

}  // namespace

uint16_t half_of(double value) {
  constexpr int kFractionBits = 10, kBias = 15;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::abs(std::frexp(value, &exponent)) * 2 - 1;
  const auto bits = static_cast<uint32_t>(std::ldexp(fraction, kFractionBits));
  return static_cast<uint16_t>((value < 0 ? 0x8000U : 0U) |
                               static_cast<uint32_t>(exponent - 1 + kBias) << kFractionBits | bits);
}

Bytes half_inputs(size_t size_bytes) {
  constexpr double kValues[] = {-1, 0, 1};
  std::mt19937 random(7);
  Bytes bytes(size_bytes);
  for (size_t at = 0; at + kHalfBytes <= size_bytes; at += kHalfBytes)
    store_le(bytes.data() + at, half_of(kValues[random() % std::size(kValues)]));
  return bytes;
}

Result<Bytes> half_results(const VendorOp& op, const FloatConv& conv, const Bytes& input, Bytes before) {
  if (op.type != "conv") return error(ErrorCode::unsupported, "{} of floats: only convolutions have results", op.type);
  for (int32_t c = 0; c < op.out_channels; ++c) {
    for (int32_t y = 0; y < op.out_height; ++y) {
      for (int32_t x = 0; x < op.out_width; ++x) {
        const double sum = sum_at(op, conv, input, y, x, c);
        const uint16_t half = half_of(sum);
        if (double{float_of_half(half)} != sum)
          return error(ErrorCode::out_of_range, "a result of {} is no half: it depends on the order of sums", sum);
        store_le(before.data() + place(op.out_height, op.out_width, y, x, c), half);
      }
    }
  }
  return before;
}

}  // namespace skillet::golden
