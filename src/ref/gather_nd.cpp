// GATHER_ND: slices of a tensor, picked by index tuples that are checked at run time.
#include <algorithm>

#include "ref/kernel.h"

namespace skillet::ref {
namespace {

struct GatherPlan {
  size_t tuples = 0;
  std::vector<size_t> dims, strides_bytes;  // of the indexed dimensions
  size_t slice_bytes = 0;
};

template <typename Index>
Result<void> gather(const GatherPlan& plan, std::span<const uint8_t> from, std::span<const uint8_t> indices,
                    std::span<uint8_t> to) {
  for (size_t i = 0; i < plan.tuples; ++i) {
    size_t at = 0;
    for (size_t k = 0; k < plan.dims.size(); ++k) {
      const auto index = static_cast<int64_t>(load_element<Index>(indices, i * plan.dims.size() + k));
      if (index < 0 || static_cast<size_t>(index) >= plan.dims[k]) {
        return error(ErrorCode::out_of_range, "GATHER_ND: index {} is outside dimension {} of {}", index, k,
                     plan.dims[k]);
      }
      at += static_cast<size_t>(index) * plan.strides_bytes[k];
    }
    std::copy_n(from.data() + at, plan.slice_bytes, to.data() + i * plan.slice_bytes);
  }
  return {};
}

}  // namespace

// The IR has no row for this op, so that nothing about its operands has been verified.
Result<KernelPtr> prepare_gather_nd(const Context& c) {
  const ir::Tensor &input = c.input(0), &indices = c.input(1), &output = c.output();
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(input.dtype));
  const int depth = indices.shape.back(0);
  if (bytes == 0 || output.dtype != input.dtype) return c.unsupported("type {}", ir::dtype_name(input.dtype));
  if (indices.shape.rank() == 0 || depth < 1 || depth > input.shape.rank()) {
    return c.unsupported("index tuples of {} for {} dimensions", depth, input.shape.rank());
  }
  GatherPlan plan{.tuples = elem_count(indices) / static_cast<size_t>(depth), .slice_bytes = bytes};
  for (int i = depth; i < input.shape.rank(); ++i) plan.slice_bytes *= dim(input, i);
  size_t stride = plan.slice_bytes;
  for (int i = depth; i-- > 0; stride *= dim(input, i)) {
    plan.dims.insert(plan.dims.begin(), dim(input, i));
    plan.strides_bytes.insert(plan.strides_bytes.begin(), stride);
  }
  if (static_cast<size_t>(output.bytes()) != plan.tuples * plan.slice_bytes) {
    return c.unsupported("output of {} bytes for {} slices of {}", output.bytes(), plan.tuples, plan.slice_bytes);
  }
  const bool wide = indices.dtype == ir::DType::int64;
  if (!wide && indices.dtype != ir::DType::int32) return c.unsupported("indices are not int32 or int64");
  return make_kernel([plan, wide, in = c.input_index(0), at = c.input_index(1), out = c.output_index()](Tensors t) {
    return wide ? gather<int64_t>(plan, t[in], t[at], t[out]) : gather<int32_t>(plan, t[in], t[at], t[out]);
  });
}

}  // namespace skillet::ref
