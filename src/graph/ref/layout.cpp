// Ops that move values without computing: RESHAPE and similar ops, TRANSPOSE, SLICE, STRIDED_SLICE, PAD, PADV2,
// SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND.
#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "graph/ref/kernel.h"
#include "graph/ref/strided_copy.h"

namespace skillet::ref {
namespace {

KernelPtr copy_kernel(const Context& c, StridedCopy copy) {
  return make_kernel([copy = std::move(copy), in = c.input_index(0), out = c.output_index()](Tensors t) {
    copy.run(t[in].data(), t[out].data());
  });
}

// The value that represents zero, as bytes of one element.
std::vector<uint8_t> zero_value(const ir::Tensor& tensor, size_t bytes) {
  std::vector<uint8_t> value(bytes);
  if (bytes == 1 && !tensor.quant.empty()) value[0] = static_cast<uint8_t>(tensor.quant.zero_point());
  return value;
}

void fill(std::span<uint8_t> to, std::span<const uint8_t> value) {
  if (value.size() == 1) return std::fill(to.begin(), to.end(), value[0]);
  for (size_t i = 0; i + value.size() <= to.size(); i += value.size()) std::copy(value.begin(), value.end(), &to[i]);
}

Result<StridedCopy> pad_copy(const Context& c, size_t bytes) {
  SK_TRY_ASSIGN(const auto margins, c.constant_ints(1));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  std::vector<CopyAxis> axes;
  ptrdiff_t first = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    axes.push_back({dim(c.input(0), static_cast<int>(i)), from[i], to[i]});
    first += margins[2 * i] * to[i];
  }
  return StridedCopy(std::move(axes), bytes, 0, first);
}

bool bit(int32_t mask, size_t i) { return ((static_cast<uint32_t>(mask) >> i) & 1) != 0; }

// STRIDED_SLICE along one dimension of the input.
struct Walk {
  int64_t first = 0, step = 1;
  bool in_output = true;
};

int64_t first_index(const ir::StridedSliceAttrs& attrs, size_t spec, int64_t begin, int64_t step, int64_t size) {
  if (begin < 0) begin += size;
  if (bit(attrs.begin_mask, spec)) return step > 0 ? 0 : size - 1;
  if (bit(attrs.shrink_axis_mask, spec)) return begin;
  return step > 0 ? std::clamp<int64_t>(begin, 0, size) : std::clamp<int64_t>(begin, -1, size - 1);
}

// One Walk per dimension of the input. ir::verify() has checked the operands.
Result<std::vector<Walk>> walks(const Context& c) {
  const auto& attrs = c.attrs<ir::StridedSliceAttrs>();
  SK_TRY_ASSIGN(const auto begin, c.constant_ints(1));
  SK_TRY(c.constant_ints(2));
  SK_TRY_ASSIGN(const auto strides, c.constant_ints(3));
  const auto& dims = c.input(0).shape.dims;
  std::vector<Walk> result;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (bit(attrs.ellipsis_mask, i)) {
      size_t after = 0;
      for (size_t j = i + 1; j < begin.size(); ++j) after += bit(attrs.new_axis_mask, j) ? 0 : 1;
      while (result.size() + after < dims.size()) result.push_back({});
    } else if (!bit(attrs.new_axis_mask, i)) {
      const int64_t size = dims[result.size()];
      result.push_back(
          {first_index(attrs, i, begin[i], strides[i], size), strides[i], !bit(attrs.shrink_axis_mask, i)});
    }
  }
  result.resize(dims.size());
  return result;
}

// Output dimensions from new_axis have size 1 and need no axis: sizes are matched by skipping them.
std::vector<bool> new_axes(const Context& c) {
  const auto& attrs = c.attrs<ir::StridedSliceAttrs>();
  const size_t specs = elem_count(c.input(1));
  std::vector<bool> result;
  size_t taken = 0;
  for (size_t i = 0; i < specs; ++i) {
    if (bit(attrs.ellipsis_mask, i)) {
      size_t after = 0;
      for (size_t j = i + 1; j < specs; ++j) after += bit(attrs.new_axis_mask, j) ? 0 : 1;
      for (; taken + after < c.input(0).shape.dims.size(); ++taken) result.push_back(false);
    } else if (bit(attrs.new_axis_mask, i)) {
      result.push_back(true);
    } else {
      ++taken;
      if (!bit(attrs.shrink_axis_mask, i)) result.push_back(false);
    }
  }
  result.resize(c.output().shape.dims.size());
  return result;
}

// Blocks of the depth ops: the image side [n, h*b, w*b, c] and the deep side [n, h, w, b*b*c].
StridedCopy block_copy(const ir::Shape& image, const ir::Shape& deep, int32_t block, size_t bytes) {
  const auto b = static_cast<ptrdiff_t>(block), c = static_cast<ptrdiff_t>(image[3] * static_cast<int64_t>(bytes));
  const auto from = byte_strides(image, bytes), to = byte_strides(deep, bytes);
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  return StridedCopy({{size(image[0]), from[0], to[0]},
                      {size(deep[1]), b * from[1], to[1]},
                      {size(block), from[1], b * c},
                      {size(deep[2]), b * from[2], to[2]},
                      {size(block), from[2], c},
                      {size(image[3]), from[3], to[3]}},
                     bytes);
}

// The space side and the batch side of SPACE_TO_BATCH_ND; with only one spatial dimension the second has size 1.
struct BatchBlocks {
  ir::Shape space, batch;
  std::array<int64_t, 2> block{1, 1}, margin{0, 0};  // margin: rows or columns before the space side's first
};

ir::Shape with_two_spatial(const ir::Shape& shape) {
  return shape.rank() == 4 ? shape : ir::Shape{shape[0], shape[1], 1, shape[2]};
}

Result<BatchBlocks> batch_blocks(const Context& c, const ir::Shape& space, const ir::Shape& batch) {
  SK_TRY_ASSIGN(const auto sizes, c.constant_ints(1));
  SK_TRY_ASSIGN(const auto margins, c.constant_ints(2));
  BatchBlocks blocks{.space = with_two_spatial(space), .batch = with_two_spatial(batch)};
  for (size_t i = 0; i < sizes.size(); ++i) {
    blocks.block[i] = sizes[i];
    blocks.margin[i] = margins[2 * i];
  }
  return blocks;
}

// Positions i on the batch side whose space position i * block + offset - margin is inside.
struct Overlap {
  int64_t first = 0, count = 0;
};
Overlap overlap(const BatchBlocks& blocks, size_t axis, int64_t offset) {
  const int64_t block = blocks.block[axis], shift = blocks.margin[axis] - offset;
  const int64_t space = blocks.space.dims[axis + 1], batch = blocks.batch.dims[axis + 1];
  const int64_t first = shift <= 0 ? 0 : ceil_div(shift, block);
  const int64_t end = space + shift <= 0 ? 0 : std::min(batch, ceil_div(space + shift, block));
  return {first, std::max<int64_t>(end - first, 0)};
}

// One copy from the space side to the batch side for each position within a block.
std::vector<StridedCopy> block_copies(const BatchBlocks& blocks, size_t bytes) {
  const auto from = byte_strides(blocks.space, bytes), to = byte_strides(blocks.batch, bytes);
  std::vector<StridedCopy> copies;
  for (int64_t dy = 0; dy < blocks.block[0]; ++dy) {
    for (int64_t dx = 0; dx < blocks.block[1]; ++dx) {
      const Overlap y = overlap(blocks, 0, dy), x = overlap(blocks, 1, dx);
      if (y.count == 0 || x.count == 0) continue;
      const int64_t batch = (dy * blocks.block[1] + dx) * blocks.space[0];
      const int64_t from_y = y.first * blocks.block[0] + dy - blocks.margin[0];
      const int64_t from_x = x.first * blocks.block[1] + dx - blocks.margin[1];
      copies.emplace_back(std::vector<CopyAxis>{{static_cast<size_t>(blocks.space[0]), from[0], to[0]},
                                                {static_cast<size_t>(y.count), from[1] * blocks.block[0], to[1]},
                                                {static_cast<size_t>(x.count), from[2] * blocks.block[1], to[2]},
                                                {static_cast<size_t>(blocks.space[3]), from[3], to[3]}},
                          bytes, from_y * from[1] + from_x * from[2],
                          batch * to[0] + y.first * to[1] + x.first * to[2]);
    }
  }
  return copies;
}

}  // namespace

Result<KernelPtr> prepare_reshape(const Context& c) {
  return make_kernel([in = c.input_index(0), out = c.output_index()](Tensors t) -> Result<void> {
    if (t[in].size() != t[out].size()) return error(ErrorCode::internal, "reshape changes the number of bytes");
    std::copy(t[in].begin(), t[in].end(), t[out].begin());
    return {};
  });
}
Result<KernelPtr> prepare_squeeze(const Context& c) { return prepare_reshape(c); }
Result<KernelPtr> prepare_expand_dims(const Context& c) { return prepare_reshape(c); }

Result<KernelPtr> prepare_transpose(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const auto permutation, c.constant_ints(1));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < permutation.size(); ++i) {
    const auto source =
        static_cast<size_t>(permutation[i] < 0 ? permutation[i] + c.input(0).shape.rank() : permutation[i]);
    axes.push_back({dim(c.output(), static_cast<int>(i)), from[source], to[i]});
  }
  return copy_kernel(c, StridedCopy(std::move(axes), bytes));
}

Result<KernelPtr> prepare_slice(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const auto begin, c.constant_ints(1));
  SK_TRY(c.constant_ints(2));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  std::vector<CopyAxis> axes;
  ptrdiff_t first = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    axes.push_back({dim(c.output(), static_cast<int>(i)), from[i], to[i]});
    first += begin[i] * from[i];
  }
  return copy_kernel(c, StridedCopy(std::move(axes), bytes, first));
}

Result<KernelPtr> prepare_strided_slice(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const auto input_walks, walks(c));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  const std::vector<bool> is_new = new_axes(c);
  std::vector<CopyAxis> axes;
  ptrdiff_t first = 0;
  size_t at = 0;  // dimension of the output
  for (size_t i = 0; i < input_walks.size(); ++i) {
    first += input_walks[i].first * from[i];
    if (!input_walks[i].in_output) continue;
    while (is_new[at]) ++at;
    axes.push_back({dim(c.output(), static_cast<int>(at)), from[i] * input_walks[i].step, to[at]});
    ++at;
  }
  return copy_kernel(c, StridedCopy(std::move(axes), bytes, first));
}

Result<KernelPtr> prepare_pad(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(StridedCopy copy, pad_copy(c, bytes));
  // TFLite's kernel ignores the output's zero point if the input has no scale.
  std::vector<uint8_t> value = c.input(0).quant.empty() ? std::vector<uint8_t>(bytes) : zero_value(c.output(), bytes);
  if (c.has_input(2)) {
    const ir::Tensor& given = c.input(2);
    if (given.shape.elems() != 1 || given.dtype != c.input(0).dtype)
      return c.unsupported("the padding value is not one of the input's type");
    return make_kernel([copy, in = c.input_index(0), by = c.input_index(2), out = c.output_index()](Tensors t) {
      fill(t[out], t[by]);
      copy.run(t[in].data(), t[out].data());
    });
  }
  return make_kernel([copy, value, in = c.input_index(0), out = c.output_index()](Tensors t) {
    fill(t[out], value);
    copy.run(t[in].data(), t[out].data());
  });
}
Result<KernelPtr> prepare_pad_v2(const Context& c) { return prepare_pad(c); }

Result<KernelPtr> prepare_space_to_depth(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  return copy_kernel(c, block_copy(c.input(0).shape, c.output().shape, c.attrs<ir::BlockAttrs>().block_size, bytes));
}

Result<KernelPtr> prepare_depth_to_space(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const int32_t block = c.attrs<ir::BlockAttrs>().block_size;
  return copy_kernel(c, block_copy(c.output().shape, c.input(0).shape, block, bytes).reversed());
}

Result<KernelPtr> prepare_space_to_batch_nd(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const BatchBlocks blocks, batch_blocks(c, c.input(0).shape, c.output().shape));
  return make_kernel([copies = block_copies(blocks, bytes), value = zero_value(c.output(), bytes),
                      in = c.input_index(0), out = c.output_index()](Tensors t) {
    fill(t[out], value);
    for (const StridedCopy& copy : copies) copy.run(t[in].data(), t[out].data());
  });
}

Result<KernelPtr> prepare_batch_to_space_nd(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const BatchBlocks blocks, batch_blocks(c, c.output().shape, c.input(0).shape));
  std::vector<StridedCopy> copies;
  for (const StridedCopy& copy : block_copies(blocks, bytes)) copies.push_back(copy.reversed());
  return make_kernel([copies, in = c.input_index(0), out = c.output_index()](Tensors t) {
    for (const StridedCopy& copy : copies) copy.run(t[in].data(), t[out].data());
  });
}

}  // namespace skillet::ref
