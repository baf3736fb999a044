// FULLY_CONNECTED: int8 and uint8 through the integer matrix multiply, float32 as a plain loop.
#include <algorithm>

#include "base/int_math.h"
#include "graph/ref/float_weights.h"
#include "graph/ref/hybrid.h"
#include "graph/ref/weighted.h"
#include "simd/byte_gemm.h"

namespace skillet::ref {
namespace {

struct FullyConnectedPlan {
  size_t rows = 0, depth = 0, depth_padded = 0, channels = 0;
  int32_t input_zero_point = 0;
  std::vector<int16_t> filter;  // [channels][depth_padded]
  OutputStage stage;
  std::vector<int16_t> row;  // scratch [depth_padded]
  std::vector<int32_t> sums;
};

template <typename T>
void run_quantized(FullyConnectedPlan& plan, const T* in, T* out) {
  for (size_t r = 0; r < plan.rows; ++r) {
    gemm::widen(in + r * plan.depth, plan.depth, plan.input_zero_point, plan.row.data());
    gemm::matmul_i16(plan.row.data(), 1, plan.depth_padded, plan.filter.data(), plan.channels, plan.depth_padded,
                     plan.depth_padded, plan.sums.data(), plan.channels);
    gemm::requantize(plan.sums.data(), 1, plan.channels, plan.stage.from(0), out + r * plan.channels);
  }
}

Result<KernelPtr> prepare_float(const Context& c) {
  const ir::Tensor& filter = c.input(1);
  const size_t channels = dim(filter, 0), depth = dim(filter, 1), rows = elem_count(c.input(0)) / depth;
  SK_TRY_ASSIGN(FloatWeights weights, FloatWeights::of(c, 1, 0));
  SK_TRY_ASSIGN(FloatWeights bias, FloatWeights::of(c, 2, channels));
  SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, c.attrs<ir::FullyConnectedAttrs>().activation));
  return make_kernel([=, weights = std::move(weights), bias = std::move(bias), in = c.input_index(0),
                      out = c.output_index()](Tensors t) {
    const float *from = elements<float>(t[in]), *by = weights.in(t), *added = bias.in(t);
    float* to = elements<float>(t[out]);
    for (size_t i = 0; i < rows * channels; ++i) {
      const size_t r = i / channels, n = i % channels;
      float sum = 0;
      for (size_t k = 0; k < depth; ++k) sum += from[r * depth + k] * by[n * depth + k];
      to[i] = std::min(std::max(sum + added[n], range.min), range.max);
    }
  });
}

}  // namespace

Result<KernelPtr> prepare_fully_connected(const Context& c) {
  const ir::Tensor& input = c.input(0);
  if (is_hybrid(c)) return prepare_hybrid_fully_connected(c);
  if (input.dtype == ir::DType::float32 && c.output().dtype == ir::DType::float32) return prepare_float(c);
  if (input.dtype == ir::DType::int16) return prepare_int16_fully_connected(c);
  return byte_gemm::available() ? prepare_byte_fully_connected(c) : prepare_wide_fully_connected(c);
}

Result<KernelPtr> prepare_wide_fully_connected(const Context& c) {
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  FullyConnectedPlan plan;
  plan.channels = dim(filter, 0);
  plan.depth = dim(filter, 1);
  plan.rows = elem_count(input) / plan.depth;
  plan.depth_padded = align_up(plan.depth, gemm::kDepthAlign);
  plan.input_zero_point = input.quant.zero_point();
  SK_TRY_ASSIGN(plan.stage, output_stage({.context = c,
                                          .channels = plan.channels,
                                          .activation = c.attrs<ir::FullyConnectedAttrs>().activation,
                                          .float_product = true}));
  plan.filter = widen_rows(filter, plan.channels, plan.depth, plan.depth_padded);
  plan.row.resize(plan.depth_padded);
  plan.sums.resize(plan.channels);
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel(
        [plan = std::move(plan), in = c.input_index(0), out = c.output_index()](Tensors tensors) mutable {
          run_quantized(plan, elements<T>(tensors[in]), elements<T>(tensors[out]));
        });
  });
}

}  // namespace skillet::ref
