// Ops that move values without computing: joining, splitting, padding, reordering.
#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "graph/ir/rules.h"

namespace skillet::ir::rules {
namespace {

// Rows of a [n, 2] operand (paddings, crops), none negative; nothing if it is not constant.
Result<std::optional<std::vector<int64_t>>> constant_margins(const OpView& v, size_t input, size_t rows) {
  SK_TRY_ASSIGN(auto values, constant_ints(v, input));
  if (!values) return values;
  const bool negative = std::any_of(values->begin(), values->end(), [](int64_t x) { return x < 0 || x > INT32_MAX; });
  if (values->size() == 2 * rows && !negative) return values;
  return error(ErrorCode::malformed, "input {} must have {} rows of 2 values from 0 on",
               describe_tensor(v.graph, v.op.inputs[input]), rows);
}

}  // namespace

Result<Shapes> concat(const OpView& v) {
  Shape result = v.shape(0);
  SK_TRY_ASSIGN(const int axis, resolve_axis(v.op.as<ConcatAttrs>().axis, result.rank()));
  const auto at = static_cast<size_t>(axis);
  int64_t total = 0;
  for (size_t i = 0; i < v.op.inputs.size(); ++i) {
    Shape shape = v.shape(i);
    if (shape.rank() == result.rank()) {
      total += shape.dims[at];
      shape.dims[at] = result.dims[at];
    }
    if (shape != result) {
      return error(ErrorCode::malformed, "input {} does not fit the first input along axis {}",
                   describe_tensor(v.graph, v.op.inputs[i]), axis);
    }
  }
  SK_TRY_ASSIGN(result.dims[at], dimension(total, "the joined dimension"));
  return Shapes{std::move(result)};
}

Result<Shapes> split(const OpView& v) {
  const int32_t count = v.op.as<SplitAttrs>().count;
  if (count <= 0 || static_cast<size_t>(count) != v.op.outputs.size()) {
    return error(ErrorCode::malformed, "{} outputs, but the attributes have {}", v.op.outputs.size(), count);
  }
  SK_TRY_ASSIGN(const auto axis, constant_int(v, 0));
  if (!axis) return Shapes{};
  Shape shape = v.shape(1);
  SK_TRY_ASSIGN(const int resolved, resolve_axis(*axis, shape.rank()));
  int32_t& dim = shape.dims[static_cast<size_t>(resolved)];
  if (dim % count != 0)
    return error(ErrorCode::malformed, "dimension {} cannot be split into {} equal parts", dim, count);
  dim /= count;
  return Shapes(static_cast<size_t>(count), shape);
}

Result<Shapes> split_v(const OpView& v) {
  SK_TRY_ASSIGN(auto sizes, constant_ints(v, 1));
  SK_TRY_ASSIGN(const auto axis, constant_int(v, 2));
  if (!sizes || !axis) return Shapes{};
  if (sizes->size() != v.op.outputs.size()) {
    return error(ErrorCode::malformed, "{} outputs, but the size operand has {}", v.op.outputs.size(), sizes->size());
  }
  SK_TRY_ASSIGN(const int resolved, resolve_axis(*axis, v.shape(0).rank()));
  const int32_t dim = v.shape(0)[resolved];
  int64_t known = 0;
  for (int64_t size : *sizes) {
    if (size < -1 || size > dim) return error(ErrorCode::malformed, "part size {} is outside 0..{}", size, dim);
    known += std::max<int64_t>(size, 0);
  }
  const auto unknown_count = std::count(sizes->begin(), sizes->end(), -1);
  if (unknown_count > 1) return error(ErrorCode::malformed, "more than one part size is -1");
  if (unknown_count == 1) *std::find(sizes->begin(), sizes->end(), -1) = dim - known;
  if (unknown_count == 1 ? known > dim : known != dim) {
    return error(ErrorCode::malformed, "the part sizes add up to {}, but the dimension is {}", known, dim);
  }
  Shapes shapes(sizes->size(), v.shape(0));
  for (size_t i = 0; i < sizes->size(); ++i) {
    shapes[i].dims[static_cast<size_t>(resolved)] = static_cast<int32_t>((*sizes)[i]);
  }
  return shapes;
}

Result<Shapes> pack(const OpView& v) {
  const auto& attrs = v.op.as<PackAttrs>();
  const auto count = static_cast<int32_t>(v.op.inputs.size());
  if (attrs.count != count)
    return error(ErrorCode::malformed, "{} inputs, but the attributes have {}", count, attrs.count);
  Shape shape = v.shape(0);
  for (size_t i = 1; i < v.op.inputs.size(); ++i) {
    if (v.shape(i) == shape) continue;
    return error(ErrorCode::malformed, "input {} differs from the first one's shape {}",
                 describe_tensor(v.graph, v.op.inputs[i]), shape.to_string());
  }
  SK_TRY_ASSIGN(const int axis, resolve_axis(attrs.axis, shape.rank() + 1));
  shape.dims.insert(shape.dims.begin() + axis, count);
  return Shapes{std::move(shape)};
}

Result<Shapes> unpack(const OpView& v) {
  const auto& attrs = v.op.as<UnpackAttrs>();
  Shape shape = v.shape(0);
  SK_TRY_ASSIGN(const int axis, resolve_axis(attrs.axis, shape.rank()));
  if (attrs.count != shape[axis] || static_cast<size_t>(attrs.count) != v.op.outputs.size()) {
    return error(ErrorCode::malformed, "{} outputs, but the attributes have {}, the dimension is {}",
                 v.op.outputs.size(), attrs.count, shape[axis]);
  }
  shape.dims.erase(shape.dims.begin() + axis);
  return Shapes(v.op.outputs.size(), shape);
}

Result<Shapes> pad(const OpView& v) {
  const Shape& input = v.shape(0);
  SK_TRY_ASSIGN(const auto margins, constant_margins(v, 1, input.dims.size()));
  if (!margins) return Shapes{};
  std::vector<int64_t> dims;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    dims.push_back(input.dims[i] + (*margins)[2 * i] + (*margins)[2 * i + 1]);
  }
  return one_shape(dims);
}

Result<Shapes> reshape(const OpView& v) {
  // A shape operand of one dimension takes precedence over the attributes; older files have only the output's shape.
  const auto& from_attrs = v.op.as<ReshapeAttrs>().shape;
  std::vector<int64_t> dims(from_attrs.begin(), from_attrs.end());
  if (v.has(1) && v.shape(1).rank() == 1) {
    SK_TRY_ASSIGN(const auto from_operand, constant_ints(v, 1));
    if (!from_operand) {
      const Shape& declared = v.out(0).shape;
      dims.assign(declared.dims.begin(), declared.dims.end());
    } else {
      dims = *from_operand;
    }
  } else if (dims.empty()) {
    const Shape& declared = v.out(0).shape;
    dims.assign(declared.dims.begin(), declared.dims.end());
  } else if (dims == std::vector<int64_t>{0}) {
    dims.clear();  // how old files write a scalar
  }
  const int64_t elems = v.shape(0).elems();
  const auto stretched = std::find(dims.begin(), dims.end(), -1);
  if (stretched != dims.end()) {
    *stretched = 1;
    int64_t others = 1;
    for (int64_t dim : dims) others = dim < 1 || dim > elems ? elems + 1 : std::min(others * dim, elems + 1);
    *stretched = others > elems || elems % others != 0 ? 0 : elems / others;
  }
  SK_TRY_ASSIGN(Shapes shapes, one_shape(dims));
  SK_TRY_ASSIGN(const int64_t got, checked_elems(shapes[0]));
  if (got == elems) return shapes;
  return error(ErrorCode::malformed, "{} values do not fit the new shape {}", elems, shapes[0].to_string());
}

Result<Shapes> squeeze(const OpView& v) {
  const Shape& input = v.shape(0);
  const auto& axes = v.op.as<SqueezeAttrs>().axes;
  std::vector<bool> dropped(input.dims.size());
  for (int32_t axis : axes) {
    SK_TRY_ASSIGN(const int resolved, resolve_axis(axis, input.rank()));
    if (input[resolved] != 1) return error(ErrorCode::malformed, "dimension {} is {}, not 1", axis, input[resolved]);
    dropped[static_cast<size_t>(resolved)] = true;
  }
  Shape shape;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    if (axes.empty() ? input.dims[i] != 1 : !dropped[i]) shape.dims.push_back(input.dims[i]);
  }
  return Shapes{std::move(shape)};
}

Result<Shapes> expand_dims(const OpView& v) {
  SK_TRY_ASSIGN(const auto axis, constant_int(v, 1));
  if (!axis) return Shapes{};
  Shape shape = v.shape(0);
  SK_TRY_ASSIGN(const int resolved, resolve_axis(*axis, shape.rank() + 1));
  shape.dims.insert(shape.dims.begin() + resolved, 1);
  return Shapes{std::move(shape)};
}

Result<Shapes> transpose(const OpView& v) {
  const Shape& input = v.shape(0);
  SK_TRY_ASSIGN(const auto permutation, constant_ints(v, 1));
  if (!permutation) return Shapes{};
  std::vector<bool> seen(input.dims.size());
  Shape shape;
  for (int64_t axis : *permutation) {
    SK_TRY_ASSIGN(const int resolved, resolve_axis(axis, input.rank()));
    if (seen[static_cast<size_t>(resolved)]) return error(ErrorCode::malformed, "axis {} is listed twice", axis);
    seen[static_cast<size_t>(resolved)] = true;
    shape.dims.push_back(input[resolved]);
  }
  if (shape.rank() == input.rank()) return Shapes{std::move(shape)};
  return error(ErrorCode::malformed, "the permutation lists {} of {} axes", shape.rank(), input.rank());
}

Result<Shapes> slice(const OpView& v) {
  const Shape& input = v.shape(0);
  SK_TRY_ASSIGN(const auto begin, constant_ints(v, 1));
  SK_TRY_ASSIGN(const auto size, constant_ints(v, 2));
  if (!begin || !size) return Shapes{};
  if (begin->size() != input.dims.size() || size->size() != input.dims.size()) {
    return error(ErrorCode::malformed, "begin and size have {} and {} values, but the input has {} dimensions",
                 begin->size(), size->size(), input.rank());
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const int64_t dim = input.dims[i], first = (*begin)[i], count = (*size)[i];
    if (first < 0 || first > dim || count < -1 || count > dim - first) {
      return error(ErrorCode::malformed, "begin {} size {} is outside dimension {} of {}", first, count, i, dim);
    }
    dims.push_back(count == -1 ? dim - first : count);
  }
  return one_shape(dims);
}

Result<Shapes> space_to_depth(const OpView& v) {
  SK_TRY(need_rank(v, 0, 4));
  const Shape& input = v.shape(0);
  const int64_t block = v.op.as<BlockAttrs>().block_size;
  if (block <= 0 || input[1] % block != 0 || input[2] % block != 0) {
    return error(ErrorCode::malformed, "blocks of {} do not divide {}x{}", block, input[1], input[2]);
  }
  return one_shape({input[0], input[1] / block, input[2] / block, input[3] * block * block});
}

Result<Shapes> depth_to_space(const OpView& v) {
  SK_TRY(need_rank(v, 0, 4));
  const Shape& input = v.shape(0);
  const int64_t block = v.op.as<BlockAttrs>().block_size;
  if (block <= 0 || block > input[3] || input[3] % (block * block) != 0) {
    return error(ErrorCode::malformed, "blocks of {} do not divide {} channels", block, input[3]);
  }
  return one_shape({input[0], input[1] * block, input[2] * block, input[3] / (block * block)});
}

namespace {

// Block sizes and margins of the two ops that move between batch and space: [batch, 1 or 2 spatial, channels].
struct BatchBlocks {
  std::vector<int64_t> sizes, margins;
  int64_t total = 1;  // product of sizes
};

Result<std::optional<BatchBlocks>> batch_blocks(const OpView& v) {
  const int rank = v.shape(0).rank();
  if (rank != 3 && rank != 4) return error(ErrorCode::malformed, "the input has {} dimensions, not 3 or 4", rank);
  const auto spatial = static_cast<size_t>(rank - 2);
  SK_TRY_ASSIGN(const auto sizes, constant_ints(v, 1));
  SK_TRY_ASSIGN(const auto margins, constant_margins(v, 2, spatial));
  if (!sizes || !margins) return std::optional<BatchBlocks>{};
  BatchBlocks blocks{*sizes, *margins};
  for (int64_t size : *sizes) {
    if (size < 1 || size > INT16_MAX) return error(ErrorCode::malformed, "block size {} is out of range", size);
  }
  if (sizes->size() != spatial) {
    return error(ErrorCode::malformed, "{} block sizes for {} spatial dimensions", sizes->size(), spatial);
  }
  for (int64_t size : *sizes) blocks.total *= size;
  return std::optional<BatchBlocks>{std::move(blocks)};
}

}  // namespace

Result<Shapes> batch_to_space(const OpView& v) {
  SK_TRY_ASSIGN(const auto blocks, batch_blocks(v));
  if (!blocks) return Shapes{};
  const Shape& input = v.shape(0);
  if (input[0] % blocks->total != 0) {
    return error(ErrorCode::malformed, "batch {} is not a multiple of the block of {}", input[0], blocks->total);
  }
  std::vector<int64_t> dims(input.dims.begin(), input.dims.end());
  dims[0] /= blocks->total;
  for (size_t i = 0; i < blocks->sizes.size(); ++i) {
    dims[i + 1] = dims[i + 1] * blocks->sizes[i] - blocks->margins[2 * i] - blocks->margins[2 * i + 1];
  }
  return one_shape(dims);
}

Result<Shapes> space_to_batch(const OpView& v) {
  SK_TRY_ASSIGN(const auto blocks, batch_blocks(v));
  if (!blocks) return Shapes{};
  const Shape& input = v.shape(0);
  std::vector<int64_t> dims(input.dims.begin(), input.dims.end());
  dims[0] *= blocks->total;
  for (size_t i = 0; i < blocks->sizes.size(); ++i) {
    const int64_t padded = dims[i + 1] + blocks->margins[2 * i] + blocks->margins[2 * i + 1];
    if (padded % blocks->sizes[i] != 0) {
      return error(ErrorCode::malformed, "blocks of {} do not divide the padded size {}", blocks->sizes[i], padded);
    }
    dims[i + 1] = padded / blocks->sizes[i];
  }
  return one_shape(dims);
}

}  // namespace skillet::ir::rules
