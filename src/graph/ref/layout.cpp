// Ops that move values without computing: RESHAPE and similar ops, TRANSPOSE, SLICE, STRIDED_SLICE, BROADCAST_TO,
// REVERSE_V2, TILE, PAD, PADV2, MIRROR_PAD, SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND,
// MATRIX_DIAG, MATRIX_SET_DIAG.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/int_math.h"
#include "graph/ref/kernel.h"
#include "graph/ref/strided_copy.h"

namespace skillet::ref {
namespace {

using Copies = std::vector<StridedCopy>;

KernelPtr copy_kernel(const Context& c, Copies copies) {
  return make_kernel([copies = std::move(copies), in = c.input_index(0), out = c.output_index()](Tensors t) {
    for (const StridedCopy& copy : copies) copy.run(t[in].data(), t[out].data());
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

// Where nothing is copied to, the output is `value`.
KernelPtr filled_kernel(const Context& c, Copies copies, std::vector<uint8_t> value) {
  return make_kernel(
      [copies = std::move(copies), value = std::move(value), in = c.input_index(0), out = c.output_index()](Tensors t) {
        fill(t[out], value);
        for (const StridedCopy& copy : copies) copy.run(t[in].data(), t[out].data());
      });
}

// Walks along one dimension of the input. The output's other dimensions repeat the values.
struct Walk {
  int64_t first = 0, step = 1;
  std::optional<size_t> output = {};  // the output's dimension; none: only the first value is read
};

Result<KernelPtr> walk_kernel(const Context& c, const std::vector<Walk>& walks) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < to.size(); ++i) axes.push_back({dim(c.output(), static_cast<int>(i)), 0, to[i]});
  ptrdiff_t first = 0;
  for (size_t i = 0; i < walks.size(); ++i) {
    first += walks[i].first * from[i];
    if (walks[i].output) axes[*walks[i].output].from_bytes = walks[i].step * from[i];
  }
  return copy_kernel(c, {StridedCopy(std::move(axes), bytes, first)});
}

bool bit(int32_t mask, size_t i) { return ((static_cast<uint32_t>(mask) >> i) & 1) != 0; }

int64_t first_index(const ir::StridedSliceAttrs& attrs, size_t spec, int64_t begin, int64_t step, int64_t size) {
  if (begin < 0) begin += size;
  if (bit(attrs.begin_mask, spec)) return step > 0 ? 0 : size - 1;
  if (bit(attrs.shrink_axis_mask, spec)) return begin;
  return step > 0 ? std::clamp<int64_t>(begin, 0, size) : std::clamp<int64_t>(begin, -1, size - 1);
}

// ir::verify() has checked the operands.
Result<std::vector<Walk>> walks_of_strided_slice(const Context& c) {
  const auto& attrs = c.attrs<ir::StridedSliceAttrs>();
  SK_TRY_ASSIGN(const auto begin, c.constant_ints(1));
  SK_TRY(c.constant_ints(2));
  SK_TRY_ASSIGN(const auto strides, c.constant_ints(3));
  const auto& dims = c.input(0).shape.dims;
  std::vector<Walk> walks;
  size_t output = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (bit(attrs.ellipsis_mask, i)) {
      size_t after = 0;
      for (size_t j = i + 1; j < begin.size(); ++j) after += bit(attrs.new_axis_mask, j) ? 0 : 1;
      while (walks.size() + after < dims.size()) walks.push_back({.output = output++});
    } else if (bit(attrs.new_axis_mask, i)) {
      ++output;
    } else {
      const int64_t size = dims[walks.size()];
      walks.push_back({.first = first_index(attrs, i, begin[i], strides[i], size), .step = strides[i]});
      if (!bit(attrs.shrink_axis_mask, i)) walks.back().output = output++;
    }
  }
  while (walks.size() < dims.size()) walks.push_back({.output = output++});
  return walks;
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
Copies block_copies(const BatchBlocks& blocks, size_t bytes) {
  const auto from = byte_strides(blocks.space, bytes), to = byte_strides(blocks.batch, bytes);
  Copies copies;
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

// A run of consecutive indices of an output, and the input's indices there.
struct Stretch {
  int64_t first = 0, count = 0;
  int64_t from = 0, step = 1;
};

// Along one dimension: mirrored, as it is, mirrored.
std::array<Stretch, 3> mirrored(int64_t size, int64_t before, int64_t all, bool repeats_ends) {
  const int64_t skipped = repeats_ends ? 0 : 1, end = before + size;
  return {Stretch{0, before, before - 1 + skipped, -1}, Stretch{before, size, 0, 1},
          Stretch{end, all - end, size - 1 - skipped, -1}};
}

StridedCopy diagonal_copy(const ir::Shape& rows, const ir::Shape& matrices, size_t bytes) {
  const auto to = byte_strides(matrices, bytes);
  const auto size = static_cast<size_t>(rows.back(0));
  const auto step = static_cast<ptrdiff_t>(bytes), row = rows.back(0) * step;
  const size_t count = size == 0 ? 0 : static_cast<size_t>(rows.elems()) / size;
  const ptrdiff_t across = to[to.size() - 2], matrix = across * matrices.back(1);
  return StridedCopy({{count, row, matrix}, {size, step, across + to.back()}}, bytes);
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
  SK_TRY_ASSIGN(const auto permutation, c.constant_ints(1));
  std::vector<Walk> walks(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    const int64_t source = permutation[i] + (permutation[i] < 0 ? c.input(0).shape.rank() : 0);
    walks[static_cast<size_t>(source)].output = i;
  }
  return walk_kernel(c, walks);
}

Result<KernelPtr> prepare_slice(const Context& c) {
  SK_TRY_ASSIGN(const auto begin, c.constant_ints(1));
  SK_TRY(c.constant_ints(2));
  std::vector<Walk> walks;
  for (const int64_t first : begin) walks.push_back({.first = first, .output = walks.size()});
  return walk_kernel(c, walks);
}

Result<KernelPtr> prepare_strided_slice(const Context& c) {
  SK_TRY_ASSIGN(const auto walks, walks_of_strided_slice(c));
  return walk_kernel(c, walks);
}

Result<KernelPtr> prepare_broadcast_to(const Context& c) {
  SK_TRY(c.constant_ints(1));
  const ir::Shape& input = c.input(0).shape;
  const auto before = static_cast<size_t>(c.output().shape.rank() - input.rank());
  std::vector<Walk> walks;
  for (const int32_t size : input.dims) walks.push_back({.step = size == 1 ? 0 : 1, .output = before + walks.size()});
  return walk_kernel(c, walks);
}

Result<KernelPtr> prepare_reverse_v2(const Context& c) {
  SK_TRY_ASSIGN(const auto axes, c.constant_ints(1));
  const ir::Shape& input = c.input(0).shape;
  std::vector<Walk> walks;
  while (walks.size() < input.dims.size()) walks.push_back({.output = walks.size()});
  for (const int64_t axis : axes) {
    const auto i = static_cast<size_t>(axis < 0 ? axis + input.rank() : axis);
    walks[i] = {.first = input.dims[i] - 1, .step = -1, .output = i};
  }
  return walk_kernel(c, walks);
}

Result<KernelPtr> prepare_tile(const Context& c) {
  SK_TRY(c.constant_ints(1));
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t size = dim(c.input(0), static_cast<int>(i)), all = dim(c.output(), static_cast<int>(i));
    axes.push_back({size == 0 ? 0 : all / size, 0, static_cast<ptrdiff_t>(size) * to[i]});
    axes.push_back({size, from[i], to[i]});
  }
  return copy_kernel(c, {StridedCopy(std::move(axes), bytes)});
}

Result<KernelPtr> prepare_pad(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const auto margins, c.constant_ints(1));
  const auto from = byte_strides(c.input(0).shape, bytes), to = byte_strides(c.output().shape, bytes);
  std::vector<CopyAxis> axes;
  ptrdiff_t first = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    axes.push_back({dim(c.input(0), static_cast<int>(i)), from[i], to[i]});
    first += margins[2 * i] * to[i];
  }
  StridedCopy copy(std::move(axes), bytes, 0, first);
  if (c.has_input(2)) {
    const ir::Tensor& given = c.input(2);
    if (given.shape.elems() != 1 || given.dtype != c.input(0).dtype)
      return c.unsupported("the padding value is not one of the input's type");
    return make_kernel([copy, in = c.input_index(0), by = c.input_index(2), out = c.output_index()](Tensors t) {
      fill(t[out], t[by]);
      copy.run(t[in].data(), t[out].data());
    });
  }
  // TFLite's kernel ignores the output's zero point if the input has no scale.
  return filled_kernel(c, {std::move(copy)},
                       c.input(0).quant.empty() ? std::vector<uint8_t>(bytes) : zero_value(c.output(), bytes));
}
Result<KernelPtr> prepare_pad_v2(const Context& c) { return prepare_pad(c); }

Result<KernelPtr> prepare_mirror_pad(const Context& c) {
  SK_TRY_ASSIGN(const auto margins, c.constant_ints(1));
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const bool repeats_ends = c.attrs<ir::MirrorPadAttrs>().symmetric;
  const ir::Shape &input = c.input(0).shape, &output = c.output().shape;
  const auto from = byte_strides(input, bytes), to = byte_strides(output, bytes);
  struct Block {
    std::vector<CopyAxis> axes;
    ptrdiff_t from = 0, to = 0;
  };
  std::vector<Block> blocks(1);
  for (size_t i = 0; i < from.size(); ++i) {
    std::vector<Block> all;
    for (const Block& block : blocks) {
      for (const Stretch& one : mirrored(input.dims[i], margins[2 * i], output.dims[i], repeats_ends)) {
        if (one.count == 0) continue;
        all.push_back(block);
        all.back().axes.push_back({static_cast<size_t>(one.count), one.step * from[i], to[i]});
        all.back().from += one.from * from[i], all.back().to += one.first * to[i];
      }
    }
    blocks = std::move(all);
  }
  Copies copies;
  for (Block& block : blocks) copies.emplace_back(std::move(block.axes), bytes, block.from, block.to);
  return copy_kernel(c, std::move(copies));
}

Result<KernelPtr> prepare_space_to_depth(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  return copy_kernel(c, {block_copy(c.input(0).shape, c.output().shape, c.attrs<ir::BlockAttrs>().block_size, bytes)});
}

Result<KernelPtr> prepare_depth_to_space(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const int32_t block = c.attrs<ir::BlockAttrs>().block_size;
  return copy_kernel(c, {block_copy(c.output().shape, c.input(0).shape, block, bytes).reversed()});
}

Result<KernelPtr> prepare_space_to_batch_nd(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const BatchBlocks blocks, batch_blocks(c, c.input(0).shape, c.output().shape));
  return filled_kernel(c, block_copies(blocks, bytes), zero_value(c.output(), bytes));
}

Result<KernelPtr> prepare_batch_to_space_nd(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  SK_TRY_ASSIGN(const BatchBlocks blocks, batch_blocks(c, c.output().shape, c.input(0).shape));
  Copies copies = block_copies(blocks, bytes);
  for (StridedCopy& copy : copies) copy = copy.reversed();
  return copy_kernel(c, std::move(copies));
}

// A matrix for each row, with its values on the diagonal.
Result<KernelPtr> prepare_matrix_diag(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  return filled_kernel(c, {diagonal_copy(c.input(0).shape, c.output().shape, bytes)}, {0});
}

Result<KernelPtr> prepare_matrix_set_diag(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  return make_kernel([copy = diagonal_copy(c.input(1).shape, c.output().shape, bytes), in = c.input_index(0),
                      diagonal = c.input_index(1), out = c.output_index()](Tensors t) {
    std::copy(t[in].begin(), t[in].end(), t[out].begin());
    copy.run(t[diagonal].data(), t[out].data());
  });
}

}  // namespace skillet::ref
