// BATCH_MATMUL: int8 through the integer matrix multiply, int16 and float32 as plain loops.
#include <algorithm>

#include "base/int_math.h"
#include "graph/ref/broadcast.h"
#include "graph/ref/kernel.h"
#include "simd/gemm.h"

namespace skillet::ref {
namespace {

struct MatmulPlan {
  size_t rows = 0, depth = 0, cols = 0;
  bool transpose_a = false, transpose_b = false;
  Broadcast batches;  // over pairs of matrices

  // Index of element (r, k) of a, and (k, n) of b, after the transposition.
  size_t a_at(size_t r, size_t k) const { return transpose_a ? k * rows + r : r * depth + k; }
  size_t b_at(size_t k, size_t n) const { return transpose_b ? n * depth + k : k * cols + n; }

  // Calls body(first element of a, of b, of the output) for each product of two matrices.
  template <typename Body>
  void for_each(Body body) const {
    batches.for_each_row([&](size_t a, size_t a_step, size_t b, size_t b_step, size_t out) {
      for (size_t i = 0; i < batches.row_elems(); ++i) {
        body((a + i * a_step) * rows * depth, (b + i * b_step) * depth * cols, (out + i) * rows * cols);
      }
    });
  }
};

ir::Shape without_matrix(ir::Shape shape) {
  shape.dims.resize(shape.dims.size() - 2);
  return shape;
}

MatmulPlan matmul_plan(const Context& c) {
  const auto& attrs = c.attrs<ir::BatchMatmulAttrs>();
  const ir::Shape &a = c.input(0).shape, &out = c.output().shape;
  return {.rows = static_cast<size_t>(out.back(1)),
          .depth = static_cast<size_t>(a.back(attrs.transpose_a ? 1 : 0)),
          .cols = static_cast<size_t>(out.back(0)),
          .transpose_a = attrs.transpose_a,
          .transpose_b = attrs.transpose_b,
          .batches = Broadcast(without_matrix(a), without_matrix(c.input(1).shape))};
}

// A loop for each sum, of which `finish` makes an element.
template <typename T, typename Sum, typename Finish>
KernelPtr plain_matmul(const Context& c, Finish finish) {
  return make_kernel([=, plan = matmul_plan(c), a = c.input_index(0), b = c.input_index(1),
                      out = c.output_index()](Tensors t) {
    plan.for_each([&](size_t a_first, size_t b_first, size_t out_first) {
      for (size_t i = 0; i < plan.rows * plan.cols; ++i) {
        const size_t r = i / plan.cols, n = i % plan.cols;
        Sum sum = 0;
        for (size_t k = 0; k < plan.depth; ++k) {
          sum +=
              Sum{load_element<T>(t[a], a_first + plan.a_at(r, k))} * load_element<T>(t[b], b_first + plan.b_at(k, n));
        }
        elements<T>(t[out])[out_first + i] = finish(sum);
      }
    });
  });
}

// int16 by int16, with 64-bit sums.
Result<KernelPtr> int16_matmul(const Context& c) {
  SK_TRY(c.need_int16(2));
  const float product = c.input(0).quant.scale() * c.input(1).quant.scale();
  const auto by = quantize_multiplier(static_cast<double>(product) / static_cast<double>(c.output().quant.scale()));
  constexpr int kMaxShift = 14;
  if (by.shift > kMaxShift) return c.unsupported("output scale {} is too small", c.output().quant.scale());
  return plain_matmul<int16_t, int64_t>(c, [by](int64_t sum) {
    return static_cast<int16_t>(
        std::clamp<int32_t>(multiply_wide_by_quantized_multiplier(sum, by), INT16_MIN, INT16_MAX));
  });
}

struct QuantizedMatmul {
  MatmulPlan plan;
  size_t depth_padded = 0;
  int32_t a_zero_point = 0, b_zero_point = 0, output_zero_point = 0;
  std::vector<int32_t> multiplier, shift;  // [cols], all the same
  // Scratch: rows of both operands with their zero points subtracted, padded with zeros.
  std::vector<int16_t> a, b;
  std::vector<int32_t> sums;

  void run(const int8_t* from_a, const int8_t* from_b, int8_t* to);
};

void QuantizedMatmul::run(const int8_t* from_a, const int8_t* from_b, int8_t* to) {
  for (size_t r = 0; r < plan.rows; ++r) {
    for (size_t k = 0; k < plan.depth; ++k) {
      a[r * depth_padded + k] = static_cast<int16_t>(from_a[plan.a_at(r, k)] - a_zero_point);
    }
  }
  for (size_t n = 0; n < plan.cols; ++n) {
    for (size_t k = 0; k < plan.depth; ++k) {
      b[n * depth_padded + k] = static_cast<int16_t>(from_b[plan.b_at(k, n)] - b_zero_point);
    }
  }
  gemm::matmul_i16(a.data(), plan.rows, depth_padded, b.data(), plan.cols, depth_padded, depth_padded, sums.data(),
                   plan.cols);
  const gemm::Requantize how{.multiplier = multiplier.data(),
                             .shift = shift.data(),
                             .output_zero_point = output_zero_point,
                             .clamp_min = INT8_MIN,
                             .clamp_max = INT8_MAX};
  gemm::requantize(sums.data(), plan.rows, plan.cols, how, to);
}

}  // namespace

Result<KernelPtr> prepare_batch_matmul(const Context& c) {
  const ir::DType type = c.input(0).dtype;
  if (c.input(1).dtype != type || c.output().dtype != type) return c.unsupported("operands of different types");
  if (type == ir::DType::float32) return plain_matmul<float, float>(c, [](float sum) { return sum; });
  if (type == ir::DType::int16) return int16_matmul(c);
  if (type != ir::DType::int8) return c.unsupported("type {}", ir::dtype_name(type));
  SK_TRY(c.need_quantized(2));
  QuantizedMatmul op{.plan = matmul_plan(c)};
  op.depth_padded = align_up(op.plan.depth, gemm::kDepthAlign);
  constexpr size_t kMaxElems = size_t{1} << 28;
  if ((op.plan.rows + op.plan.cols) * op.depth_padded + op.plan.rows * op.plan.cols > kMaxElems) {
    return c.unsupported("a product of {}x{}x{} is too large", op.plan.rows, op.plan.depth, op.plan.cols);
  }
  op.a_zero_point = c.input(0).quant.zero_point();
  op.b_zero_point = c.input(1).quant.zero_point();
  op.output_zero_point = c.output().quant.zero_point();
  // TFLite rounds the product of the scales to float.
  const float product = c.input(0).quant.scale() * c.input(1).quant.scale();
  const auto by = quantize_multiplier(static_cast<double>(product) / static_cast<double>(c.output().quant.scale()));
  op.multiplier.assign(op.plan.cols, by.multiplier);
  op.shift.assign(op.plan.cols, by.shift);
  op.a.resize(op.plan.rows * op.depth_padded);
  op.b.resize(op.plan.cols * op.depth_padded);
  op.sums.resize(op.plan.rows * op.plan.cols);
  return make_kernel([op = std::move(op), a = c.input_index(0), b = c.input_index(1),
                      out = c.output_index()](Tensors t) mutable {
    op.plan.for_each([&](size_t a_first, size_t b_first, size_t out_first) {
      op.run(elements<int8_t>(t[a]) + a_first, elements<int8_t>(t[b]) + b_first, elements<int8_t>(t[out]) + out_first);
    });
  });
}

}  // namespace skillet::ref
