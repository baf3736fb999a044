// PickPlan: fills a tensor with values of another tensor, which are selected along each axis separately.
// Called by the ops that repeat, reverse or mirror.
// Must not know: element types, operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir/shape.h"

namespace skillet::ref {

class PickPlan {
 public:
  // sources[i][k]: the index along axis i of `input` for output index k.
  PickPlan(const ir::Shape& input, const std::vector<std::vector<size_t>>& sources, size_t elem_bytes);

  void run(const uint8_t* from, uint8_t* to) const;

 private:
  std::vector<std::vector<size_t>> offsets_;  // by axis and output index, in bytes
  size_t block_bytes_;                        // bytes that are contiguous on both sides
};

}  // namespace skillet::ref
