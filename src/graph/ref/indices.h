// Indices that an op reads at run time: loaded from any of their types, with an error if out of range.
// Called by ops that select or place values by index.
// Must not know: the selected values.
#pragma once

#include <string>

#include "graph/ref/kernel.h"

namespace skillet::ref {

// Indices are int16, int32 or int64.
inline int64_t load_index(ir::DType dtype, std::span<const uint8_t> indices, size_t i) {
  if (dtype == ir::DType::int64) return load_element<int64_t>(indices, i);
  return dtype == ir::DType::int16 ? load_element<int16_t>(indices, i) : load_element<int32_t>(indices, i);
}

inline bool is_inside(int64_t index, size_t size) { return index >= 0 && static_cast<size_t>(index) < size; }

// `op` is the result of Context::describe().
inline Error outside(const std::string& op, int64_t index, size_t size) {
  return error(ErrorCode::out_of_range, "{}: index {} is outside a dimension of {}", op, index, size);
}

// Tuples of indices into the first dimensions of a tensor. Each tuple selects a slice of it.
struct IndexTuples {
  std::string op;
  ir::DType type = ir::DType::int32;
  size_t count = 0;
  std::vector<size_t> dims, strides;  // of the indexed dimensions; in elements
  size_t slice = 1;                   // elements

  IndexTuples(const Context& c, const ir::Tensor& indices, const ir::Shape& indexed)
      : op(c.describe()), type(indices.dtype) {
    const int depth = indices.shape.back(0);
    count = elem_count(indices) / static_cast<size_t>(depth);
    for (int i = depth; i < indexed.rank(); ++i) slice *= static_cast<size_t>(indexed[i]);
    dims.assign(indexed.dims.begin(), indexed.dims.begin() + depth);
    strides.resize(dims.size());
    size_t stride = slice;
    for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  }

  // The first element of the slice that tuple `i` selects.
  Result<size_t> place(std::span<const uint8_t> indices, size_t i) const {
    size_t at = 0;
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t index = load_index(type, indices, i * dims.size() + k);
      if (!is_inside(index, dims[k])) return outside(op, index, dims[k]);
      at += static_cast<size_t>(index) * strides[k];
    }
    return at;
  }
};

}  // namespace skillet::ref
