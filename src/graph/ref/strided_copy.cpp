#include "graph/ref/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simd/byte_matrix.h"

namespace skillet::ref {

std::vector<ptrdiff_t> byte_strides(const ir::Shape& shape, size_t elem_bytes) {
  std::vector<ptrdiff_t> strides(shape.dims.size());
  auto stride = static_cast<ptrdiff_t>(elem_bytes);
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape.dims[i];
  }
  return strides;
}

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, size_t elem_bytes, ptrdiff_t from_first, ptrdiff_t to_first)
    : block_bytes_(elem_bytes), from_first_(from_first), to_first_(to_first) {
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.size == 1; });
  while (!axes.empty()) {
    const CopyAxis& inner = axes.back();
    const auto block = static_cast<ptrdiff_t>(block_bytes_);
    if (inner.size == 0 || inner.from_bytes != block || inner.to_bytes != block) break;
    block_bytes_ *= inner.size;
    axes.pop_back();
  }
  axes_ = std::move(axes);
  take_matrix();
}

void StridedCopy::take_matrix() {
  const auto block = static_cast<ptrdiff_t>(block_bytes_);
  if (block != 1 && block != 4) return;
  const auto inner_from =
      std::find_if(axes_.begin(), axes_.end(), [&](const auto& a) { return a.from_bytes == block; });
  const auto inner_to = std::find_if(axes_.begin(), axes_.end(), [&](const auto& a) { return a.to_bytes == block; });
  if (inner_from == axes_.end() || inner_to == axes_.end() || inner_from == inner_to) return;
  if (inner_to->from_bytes <= 0 || inner_from->to_bytes <= 0 || inner_from->size == 0 || inner_to->size == 0) return;
  matrix_ = Matrix{inner_to->size, inner_from->size, inner_to->from_bytes, inner_from->to_bytes};
  axes_.erase(std::max(inner_from, inner_to));
  axes_.erase(std::min(inner_from, inner_to));  // erases the later axis; the other one stays in place
}

void StridedCopy::copy_block(const uint8_t* from, uint8_t* to) const {
  if (!matrix_) {
    std::memcpy(to, from, block_bytes_);
    return;
  }
  const Matrix& m = *matrix_;
  const auto stride_in = static_cast<size_t>(m.from_row), stride_out = static_cast<size_t>(m.to_col);
  if (block_bytes_ == 1) {
    return transpose_bytes(from, to,
                           {.rows = m.rows, .cols = m.cols, .stride_in = stride_in, .stride_out = stride_out});
  }
  constexpr size_t kTile = 16;  // rows whose cache lines stay in the cache while columns are copied
  for (size_t first = 0; first < m.rows; first += kTile) {
    const size_t end = std::min(m.rows, first + kTile);
    for (size_t c = 0; c < m.cols; ++c) {
      for (size_t r = first; r < end; ++r) {
        std::memcpy(to + c * stride_out + r * sizeof(uint32_t), from + r * stride_in + c * sizeof(uint32_t),
                    sizeof(uint32_t));
      }
    }
  }
}

StridedCopy StridedCopy::reversed() const {
  StridedCopy copy = *this;
  for (CopyAxis& axis : copy.axes_) std::swap(axis.from_bytes, axis.to_bytes);
  std::swap(copy.from_first_, copy.to_first_);
  if (copy.matrix_) copy.matrix_ = Matrix{matrix_->cols, matrix_->rows, matrix_->to_col, matrix_->from_row};
  return copy;
}

void StridedCopy::run(const uint8_t* from, uint8_t* to) const {
  for (const CopyAxis& axis : axes_) {
    if (axis.size == 0) return;
  }
  std::vector<size_t> at(axes_.size());
  from += from_first_;
  to += to_first_;
  for (;;) {
    copy_block(from, to);
    size_t i = axes_.size();
    for (; i-- > 0;) {
      const CopyAxis& axis = axes_[i];
      if (++at[i] < axis.size) {
        from += axis.from_bytes;
        to += axis.to_bytes;
        break;
      }
      at[i] = 0;
      from -= static_cast<ptrdiff_t>(axis.size - 1) * axis.from_bytes;
      to -= static_cast<ptrdiff_t>(axis.size - 1) * axis.to_bytes;
    }
    if (i == SIZE_MAX) return;
  }
}

}  // namespace skillet::ref
