#include "ref/strided_copy.h"

#include <cstring>
#include <utility>

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
    if (inner.from_bytes != block || inner.to_bytes != block) break;
    block_bytes_ *= inner.size;
    axes.pop_back();
  }
  axes_ = std::move(axes);
}

StridedCopy StridedCopy::reversed() const {
  StridedCopy copy = *this;
  for (CopyAxis& axis : copy.axes_) std::swap(axis.from_bytes, axis.to_bytes);
  std::swap(copy.from_first_, copy.to_first_);
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
    std::memcpy(to, from, block_bytes_);
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
