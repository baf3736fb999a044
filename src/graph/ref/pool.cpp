// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D. Padding never counts: windows are clipped at the border.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/ref/window.h"
#include "simd/vector_math.h"

namespace skillet::ref {
namespace {

struct PoolPlan {
  Window window;
  size_t batches = 0, channels = 0;
};

Result<PoolPlan> pool_plan(const Context& c) {
  const auto& attrs = c.attrs<ir::PoolAttrs>();
  const ir::ConvAttrs as_conv{
      .padding = attrs.padding, .rows = attrs.rows, .stride_h = attrs.stride_h, .stride_w = attrs.stride_w};
  PoolPlan plan{.batches = dim(c.input(0), 0), .channels = dim(c.input(0), 3)};
  const ir::Shape filter{1, attrs.filter_h, attrs.filter_w, 1};
  SK_TRY_ASSIGN(plan.window, conv_window(c, as_conv, c.input(0).shape, filter, c.output().shape));
  return plan;
}

// For each output pixel: take(input pixel) for each pixel of the window, then finish(output pixel, their number).
template <typename T, typename Take, typename Finish>
void list_windows(const PoolPlan& plan, const T* in, T* out, Take take, Finish finish) {
  const Window& w = plan.window;
  for (size_t i = 0; i < plan.batches * w.output_px(); ++i, out += plan.channels) {
    const T* image = in + i / w.output_px() * w.input_px() * plan.channels;
    const size_t px = i % w.output_px(), output_w = static_cast<size_t>(w.output_w);
    const int32_t y = w.input_row(px / output_w, 0), x = w.input_col(px % output_w, 0);
    const int32_t y_end = std::min(y + w.kernel_h, w.input_h), x_end = std::min(x + w.kernel_w, w.input_w);
    for (int32_t iy = std::max(y, 0); iy < y_end; ++iy) {
      for (int32_t ix = std::max(x, 0); ix < x_end; ++ix) take(image + w.input_index(iy, ix) * plan.channels);
    }
    finish(out, (y_end - std::max(y, 0)) * (x_end - std::max(x, 0)));
  }
}

// Of each channel: value = add(value, element) for each pixel of the window, from `initial` on; the output is
// finish(value, number of pixels).
template <typename T, typename Value, typename Add, typename Finish>
KernelPtr pool_kernel(const Context& c, const PoolPlan& plan, Value initial, Add add, Finish finish) {
  return make_kernel([=, in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::vector<Value> all(plan.channels, initial);
    const auto take = [n = plan.channels, values = all.data(), add](const T* from) {
      for (size_t i = 0; i < n; ++i) values[i] = add(values[i], from[i]);
    };
    const auto end = [n = plan.channels, values = all.data(), finish, initial](T* to, int32_t count) {
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<T>(finish(values[i], count));
      std::fill_n(values, n, initial);
    };
    list_windows(plan, elements<const T>(t[in]), elements<T>(t[out]), take, end);
  });
}

constexpr auto kLarger = [](auto a, auto b) { return std::max(a, b); };
float limited(float value, FloatRange range) { return std::min(std::max(value, range.min), range.max); }

template <typename T>
KernelPtr byte_max_pool(const Context& c, const PoolPlan& plan, Range range) {
  const auto taps = static_cast<size_t>(plan.window.kernel_h) * static_cast<size_t>(plan.window.kernel_w);
  std::vector<const T*> pixels(std::min(taps, plan.window.input_px()));
  return make_kernel(
      [plan, range, pixels = std::move(pixels), in = c.input_index(0), out = c.output_index()](Tensors t) mutable {
        size_t count = 0;
        // The window's pixels are listed first, then processed together.
        const auto take = [&](const T* pixel) { pixels[count++] = pixel; };
        const auto finish = [&](T* to, int32_t) {
          vector_math::maximum(pixels.data(), count, plan.channels, static_cast<T>(range.min),
                               static_cast<T>(range.max), to);
          count = 0;
        };
        list_windows(plan, elements<const T>(t[in]), elements<T>(t[out]), take, finish);
      });
}

template <typename T>
KernelPtr average_pool(const Context& c, const PoolPlan& plan, Range range) {
  using Sum = std::conditional_t<sizeof(T) == 1, int32_t, int64_t>;
  const auto finish = [range](Sum sum, int32_t count) {
    const Sum half = sum > 0 ? count / 2 : -(count / 2);
    return std::clamp<Sum>((sum + half) / count, range.min, range.max);
  };
  return pool_kernel<T>(c, plan, Sum{0}, std::plus<>(), finish);
}

// Pooling keeps the quantization: TFLite requires it.
Result<Range> quantized_range(const Context& c) {
  SK_TRY(c.input(0).dtype == ir::DType::int16 ? c.need_int16(1) : c.need_quantized(1));
  if (c.input(0).quant.zero_point() != c.output().quant.zero_point() ||
      std::abs(c.input(0).quant.scale() - c.output().quant.scale()) > 1e-6F) {
    return c.unsupported("input and output have different quantization");
  }
  return activation_range(c, c.attrs<ir::PoolAttrs>().activation, c.output());
}

}  // namespace

Result<KernelPtr> prepare_max_pool_2d(const Context& c) {
  SK_TRY_ASSIGN(const PoolPlan plan, pool_plan(c));
  if (c.input(0).dtype == ir::DType::float32) {
    SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, c.attrs<ir::PoolAttrs>().activation));
    return pool_kernel<float>(c, plan, std::numeric_limits<float>::lowest(), kLarger,
                              [range](float value, int32_t) { return limited(value, range); });
  }
  SK_TRY_ASSIGN(const Range range, quantized_range(c));
  if (c.input(0).dtype == ir::DType::int16)
    return pool_kernel<int16_t>(
        c, plan, std::numeric_limits<int16_t>::lowest(), kLarger,
        [range](int16_t value, int32_t) { return std::clamp<int32_t>(value, range.min, range.max); });
  return with_8bit(c.input(0).dtype, [&]<typename T>(T) { return byte_max_pool<T>(c, plan, range); });
}

Result<KernelPtr> prepare_l2_pool_2d(const Context& c) {
  SK_TRY_ASSIGN(const PoolPlan plan, pool_plan(c));
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, c.attrs<ir::PoolAttrs>().activation));
  return pool_kernel<float>(
      c, plan, 0.0F, [](float sum, float value) { return sum + value * value; },
      [range](float sum, int32_t count) { return limited(std::sqrt(sum / static_cast<float>(count)), range); });
}

Result<KernelPtr> prepare_average_pool_2d(const Context& c) {
  SK_TRY_ASSIGN(const PoolPlan plan, pool_plan(c));
  if (c.input(0).dtype == ir::DType::float32) {
    SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, c.attrs<ir::PoolAttrs>().activation));
    return pool_kernel<float>(c, plan, 0.0F, std::plus<>(), [range](float sum, int32_t count) {
      return limited(sum / static_cast<float>(count), range);
    });
  }
  SK_TRY_ASSIGN(const Range range, quantized_range(c));
  return with_quantized(c.input(0).dtype, [&](auto type) { return average_pool<decltype(type)>(c, plan, range); });
}

}  // namespace skillet::ref
