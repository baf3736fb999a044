// STRIDED_SLICE: in a file of its own because its masks make it long.
#include <algorithm>

#include "graph/ir/rules.h"

namespace skillet::ir::rules {
namespace {

bool bit(int32_t mask, size_t i) { return i < 32 && ((static_cast<uint32_t>(mask) >> i) & 1) != 0; }

struct Range {
  int64_t begin = 0, end = 0, stride = 1;
};

// Number of indices that a range of one dimension selects; begin and end may be negative (from the end) or out of
// range.
int64_t selected(const StridedSliceAttrs& attrs, Range range, size_t i, int64_t dim) {
  // Range of an index: from -1 (before the first element) when the stride is negative.
  const int64_t low = range.stride > 0 ? 0 : -1, high = range.stride > 0 ? dim : dim - 1;
  const auto clamped = [&](int64_t index) { return std::clamp(index < 0 ? index + dim : index, low, high); };
  int64_t begin = clamped(range.begin), end = 0;
  if (bit(attrs.begin_mask, i)) begin = range.stride > 0 ? low : high;
  if (bit(attrs.end_mask, i)) {
    end = range.stride > 0 ? high : low;
  } else {
    end = attrs.offset ? std::clamp(begin + range.end, low, high) : clamped(range.end);
  }
  const int64_t length = range.stride > 0 ? end - begin : begin - end;
  const int64_t step = std::abs(range.stride);
  return length <= 0 ? 0 : (length + step - 1) / step;
}

}  // namespace

Result<Shapes> strided_slice(const OpView& v) {
  const auto& attrs = v.op.as<StridedSliceAttrs>();
  SK_TRY_ASSIGN(const auto begin, constant_ints(v, 1));
  SK_TRY_ASSIGN(const auto end, constant_ints(v, 2));
  SK_TRY_ASSIGN(const auto strides, constant_ints(v, 3));
  if (!begin || !end || !strides) return Shapes{};
  const size_t count = begin->size();
  if (end->size() != count || strides->size() != count || count > static_cast<size_t>(kMaxRank)) {
    return error(ErrorCode::malformed, "begin, end and strides have {}, {} and {} values", count, end->size(),
                 strides->size());
  }
  const auto& input = v.shape(0).dims;
  std::vector<int64_t> dims;
  size_t at = 0;  // dimension of the input
  bool ellipsis_seen = false;
  for (size_t i = 0; i < count; ++i) {
    if (bit(attrs.ellipsis_mask, i)) {
      if (ellipsis_seen) return error(ErrorCode::malformed, "more than one ellipsis");
      ellipsis_seen = true;
      size_t after = 0;  // dimensions that the specifications after the ellipsis use
      for (size_t j = i + 1; j < count; ++j) after += bit(attrs.new_axis_mask, j) ? 0 : 1;
      while (at + after < input.size()) dims.push_back(input[at++]);
      continue;
    }
    if (bit(attrs.new_axis_mask, i)) {
      dims.push_back(1);
      continue;
    }
    if (at >= input.size()) return error(ErrorCode::malformed, "more ranges than the {} dimensions", input.size());
    const Range range = {(*begin)[i], (*end)[i], (*strides)[i]};
    for (int64_t value : {range.begin, range.end, range.stride}) {
      if (value < INT32_MIN || value > INT32_MAX) return error(ErrorCode::malformed, "index {} is too large", value);
    }
    if (range.stride == 0) return error(ErrorCode::malformed, "stride 0 in dimension {}", at);
    const int64_t dim = input[at++];
    if (!bit(attrs.shrink_axis_mask, i)) {
      dims.push_back(selected(attrs, range, i, dim));
    } else if (range.begin < -dim || range.begin >= dim) {
      return error(ErrorCode::malformed, "index {} is outside the dimension of {}", range.begin, dim);
    }
  }
  dims.insert(dims.end(), input.begin() + static_cast<ptrdiff_t>(at), input.end());
  return one_shape(dims);
}

}  // namespace skillet::ir::rules
