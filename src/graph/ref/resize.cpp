// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR. int8 interpolates in integers with 10 fractional bits, uint8 and float32
// in float, as TFLite's reference kernels do.
#include "graph/ref/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "graph/ref/kernel.h"
#include "simd/interpolate.h"

namespace skillet::ref {
namespace {

using interpolate::Place;

std::vector<Place<float>> float_places(int32_t input, int32_t output, const ir::ResizeAttrs& attrs) {
  float scale = static_cast<float>(input) / static_cast<float>(output);
  if (attrs.align_corners && output > 1) scale = static_cast<float>(input - 1) / static_cast<float>(output - 1);
  std::vector<Place<float>> places;
  for (int32_t i = 0; i < output; ++i) {
    const auto value = static_cast<float>(i);
    const float at = attrs.half_pixel_centers ? (value + 0.5F) * scale - 0.5F : value * scale;
    const int32_t low = std::clamp(static_cast<int32_t>(std::floor(at)), 0, input - 1);
    const int32_t high = std::clamp(static_cast<int32_t>(std::ceil(at)), 0, input - 1);
    places.push_back({static_cast<size_t>(low), static_cast<size_t>(high), at - static_cast<float>(low)});
  }
  return places;
}

template <typename Position>
std::vector<Place<Position>> integer_places(int64_t input, int64_t output, const ir::ResizeAttrs& attrs) {
  constexpr int64_t kOne = 1 << 10;
  int64_t scale = (kOne * input + output / 2) / output;
  if (attrs.align_corners && output > 1) scale = (kOne * (input - 1) + (output - 1) / 2) / (output - 1);
  std::vector<Place<Position>> places;
  for (int64_t i = 0; i < output; ++i) {
    const int64_t at = attrs.half_pixel_centers ? i * scale + scale / 2 - kOne / 2 : i * scale;
    const int64_t low = std::clamp<int64_t>(at / kOne, 0, input - 1);
    const int64_t high = std::clamp<int64_t>((at + kOne - 1) / kOne, 0, input - 1);
    places.push_back({static_cast<size_t>(low), static_cast<size_t>(high), static_cast<Position>(at - kOne * low)});
  }
  return places;
}

// Like interpolate::row(), for int16.
void interpolate_row(const int16_t* low, const int16_t* high, int64_t down, const std::vector<Place<int64_t>>& across,
                     size_t depth, int16_t* out) {
  constexpr int64_t kOne = 1 << 10, kHalf = 1 << 19;
  for (const auto& x : across) {
    const int64_t low_low = (kOne - down) * (kOne - x.at), high_low = down * (kOne - x.at);
    const int64_t low_high = (kOne - down) * x.at, high_high = down * x.at;
    const size_t left = x.low * depth, right = x.high * depth;
    for (size_t i = 0; i < depth; ++i) {
      const int64_t sum =
          low[left + i] * low_low + high[left + i] * high_low + low[right + i] * low_high + high[right + i] * high_high;
      *out++ = static_cast<int16_t>((sum + (sum > 0 ? kHalf : -kHalf)) / (kOne * kOne));
    }
  }
}

template <typename T, typename Position>
KernelPtr bilinear(const Context& c, std::vector<Place<Position>> rows, std::vector<Place<Position>> cols) {
  return make_kernel([rows = std::move(rows), cols = std::move(cols), batches = dim(c.input(0), 0),
                      h = dim(c.input(0), 1), w = dim(c.input(0), 2), depth = dim(c.input(0), 3), in = c.input_index(0),
                      out = c.output_index()](Tensors t) {
    T* to = elements<T>(t[out]);
    for (size_t b = 0; b < batches; ++b) {
      const T* image = elements<const T>(t[in]) + b * h * w * depth;
      for (const auto& y : rows) {
        const T *low = image + y.low * w * depth, *high = image + y.high * w * depth;
        if constexpr (std::is_same_v<T, int16_t>) {
          interpolate_row(low, high, y.at, cols, depth, to);
        } else {
          interpolate::row(low, high, y.at, cols, depth, to);
        }
        to += cols.size() * depth;
      }
    }
  });
}

}  // namespace

std::vector<BilinearTap> bilinear_taps(ir::DType dtype, int32_t input, int32_t output, const ir::ResizeAttrs& attrs) {
  constexpr double kOne = 1 << 10;
  std::vector<BilinearTap> out;
  if (dtype == ir::DType::int8) {
    for (const auto& place : integer_places<int64_t>(input, output, attrs))
      out.push_back({place.low, place.high, static_cast<double>(place.at) / kOne});
  } else {
    for (const auto& place : float_places(input, output, attrs))
      out.push_back({place.low, place.high, double{place.at}});
  }
  return out;
}

std::vector<size_t> nearest_taps(int32_t input, int32_t output, const ir::ResizeAttrs& attrs) {
  const float scale = attrs.align_corners && output > 1 ? static_cast<float>(input - 1) / static_cast<float>(output - 1)
                                                        : static_cast<float>(input) / static_cast<float>(output);
  const float offset = attrs.half_pixel_centers ? 0.5F : 0.0F;
  std::vector<size_t> taps;
  for (int32_t i = 0; i < output; ++i) {
    const float at = (static_cast<float>(i) + offset) * scale;
    const float rounded = attrs.align_corners ? std::round(at) : std::floor(at);
    taps.push_back(static_cast<size_t>(std::clamp(static_cast<int32_t>(rounded), 0, input - 1)));
  }
  return taps;
}

Result<KernelPtr> prepare_resize_bilinear(const Context& c) {
  const auto& attrs = c.attrs<ir::ResizeAttrs>();
  const ir::Shape &in = c.input(0).shape, &out = c.output().shape;
  SK_TRY(c.constant_ints(1));
  if (c.input(0).dtype == ir::DType::int8) {
    return bilinear<int8_t>(c, integer_places<int32_t>(in[1], out[1], attrs),
                            integer_places<int32_t>(in[2], out[2], attrs));
  }
  if (c.input(0).dtype == ir::DType::int16) {
    return bilinear<int16_t>(c, integer_places<int64_t>(in[1], out[1], attrs),
                             integer_places<int64_t>(in[2], out[2], attrs));
  }
  auto rows = float_places(in[1], out[1], attrs), cols = float_places(in[2], out[2], attrs);
  if (c.input(0).dtype == ir::DType::uint8) return bilinear<uint8_t>(c, std::move(rows), std::move(cols));
  if (c.input(0).dtype == ir::DType::float32) return bilinear<float>(c, std::move(rows), std::move(cols));
  return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
}

Result<KernelPtr> prepare_resize_nearest_neighbor(const Context& c) {
  const auto& attrs = c.attrs<ir::ResizeAttrs>();
  const ir::Shape &in = c.input(0).shape, &out = c.output().shape;
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY(c.constant_ints(1));
  return make_kernel([rows = nearest_taps(in[1], out[1], attrs), cols = nearest_taps(in[2], out[2], attrs),
                      batches = dim(c.input(0), 0), h = dim(c.input(0), 1), w = dim(c.input(0), 2),
                      pixel = dim(c.input(0), 3) * bytes, from = c.input_index(0), to = c.output_index()](Tensors t) {
    uint8_t* at = t[to].data();
    for (size_t b = 0; b < batches; ++b) {
      for (size_t y : rows) {
        const uint8_t* row = t[from].data() + (b * h + y) * w * pixel;
        for (size_t x : cols) at = std::copy_n(row + x * pixel, pixel, at);
      }
    }
  });
}

}  // namespace skillet::ref
