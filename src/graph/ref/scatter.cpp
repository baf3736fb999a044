// Ops that place values by indices: SCATTER_ND, DYNAMIC_UPDATE_SLICE, REVERSE_SEQUENCE.
#include <algorithm>

#include "graph/ref/indices.h"
#include "graph/ref/strided_copy.h"
#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// Integers wrap around.
template <typename T, typename Add>
KernelPtr scatter_kernel(const Context& c, Add add) {
  return make_kernel([add, tuples = IndexTuples(c, c.input(0), c.output().shape), at = c.input_index(0),
                      from = c.input_index(1), out = c.output_index()](Tensors t) -> Result<void> {
    std::fill(t[out].begin(), t[out].end(), uint8_t{0});
    for (size_t i = 0; i < tuples.count; ++i) {
      SK_TRY_ASSIGN(const size_t first, tuples.place(t[at], i));
      T* to = elements<T>(t[out]) + first;
      for (size_t k = 0; k < tuples.slice; ++k) {
        to[k] = add(to[k], load_element<T>(t[from], i * tuples.slice + k));
      }
    }
    return {};
  });
}

}  // namespace

Result<KernelPtr> prepare_scatter_nd(const Context& c) {
  SK_TRY(c.constant_ints(2));
  return with_type(c, c.output().dtype, [&]<typename T>(T) -> Result<KernelPtr> {
    if constexpr (std::is_same_v<T, bool>) {
      return scatter_kernel<uint8_t>(c, [](uint8_t x, uint8_t y) -> uint8_t { return x != 0 || y != 0 ? 1 : 0; });
    } else {
      return scatter_kernel<T>(c, [](T x, T y) {
        if constexpr (std::is_floating_point_v<T>) return x + y;
        using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<T>>::type;
        return static_cast<T>(static_cast<U>(static_cast<U>(x) + static_cast<U>(y)));
      });
    }
  });
}

Result<KernelPtr> prepare_dynamic_update_slice(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const ir::Shape &input = c.input(0).shape, &update = c.input(1).shape;
  const auto from = byte_strides(update, bytes), to = byte_strides(input, bytes);
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < from.size(); ++i) axes.push_back({static_cast<size_t>(update.dims[i]), from[i], to[i]});
  return make_kernel([copy = StridedCopy(std::move(axes), bytes), to, dims = input.dims, sizes = update.dims,
                      type = c.input(2).dtype, in = c.input_index(0), by = c.input_index(1), at = c.input_index(2),
                      out = c.output_index()](Tensors t) {
    std::copy(t[in].begin(), t[in].end(), t[out].begin());
    // An update that would exceed the end begins earlier.
    ptrdiff_t first = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      first += std::clamp<int64_t>(load_index(type, t[at], i), 0, int64_t{dims[i]} - sizes[i]) * to[i];
    copy.run(t[by].data(), t[out].data() + first);
  });
}

Result<KernelPtr> prepare_reverse_sequence(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const auto& attrs = c.attrs<ir::ReverseSequenceAttrs>();
  const ir::Tensor& input = c.input(0);
  size_t inner = bytes;  // bytes of one step
  for (int i = attrs.axis + 1; i < input.shape.rank(); ++i) inner *= dim(input, i);
  // If the batch axis is inside the sequence axis, a step consists of one part per batch.
  const bool batch_inside = attrs.batch_axis > attrs.axis;
  size_t part = bytes;
  for (int i = attrs.batch_axis + 1; i < input.shape.rank(); ++i) part *= dim(input, i);
  const size_t size = dim(input, attrs.axis), batches = dim(input, attrs.batch_axis);
  const size_t block = batch_inside ? part : inner;
  return make_kernel([=, op = c.describe(), type = c.input(1).dtype, in = c.input_index(0), at = c.input_index(1),
                      out = c.output_index()](Tensors t) -> Result<void> {
    for (size_t b = 0; b < batches; ++b) {
      const int64_t length = load_index(type, t[at], b);
      if (length < 0 || !is_inside(length, size + 1)) return outside(op, length, size);
    }
    for (size_t first = 0; first < t[in].size(); first += block) {
      const size_t step = first / inner % size, batch = first / part % batches;
      const auto length = static_cast<size_t>(load_index(type, t[at], batch));
      const size_t from = step < length ? length - 1 - step : step;
      std::copy_n(t[in].data() + first - step * inner + from * inner, block, t[out].data() + first);
    }
    return {};
  });
}

}  // namespace skillet::ref
