// StridedCopy: moves an n-dimensional block between two layouts, for any element type.
// Called by the ops that reorder, split or pad.
// Must not know: tensors' types, operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir/shape.h"

namespace skillet::ref {

struct CopyAxis {
  size_t size = 1;
  ptrdiff_t from_bytes = 0, to_bytes = 0;  // strides; may be negative
};

// Strides in bytes along each dimension of a dense tensor.
std::vector<ptrdiff_t> byte_strides(const ir::Shape& shape, size_t elem_bytes);

class StridedCopy {
 public:
  // Axes outermost first; `from_first` and `to_first` are the byte offsets of the first element.
  StridedCopy(std::vector<CopyAxis> axes, size_t elem_bytes, ptrdiff_t from_first = 0, ptrdiff_t to_first = 0);

  void run(const uint8_t* from, uint8_t* to) const;
  // The reverse copy: reads the destination and writes the source.
  StridedCopy reversed() const;

 private:
  // Two axes, one contiguous in the source, the other in the destination: element (r, c) goes from r * from_row + c
  // elements to c * to_col + r elements.
  struct Matrix {
    size_t rows = 1, cols = 1;
    ptrdiff_t from_row = 0, to_col = 0;
  };
  void take_matrix();
  void copy_block(const uint8_t* from, uint8_t* to) const;

  std::vector<CopyAxis> axes_;
  std::optional<Matrix> matrix_;
  size_t block_bytes_;  // bytes that are contiguous on both sides
  ptrdiff_t from_first_, to_first_;
};

}  // namespace skillet::ref
