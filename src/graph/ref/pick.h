// PickPlan: fills a tensor with values of another one that are chosen for each axis by itself.
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
  // sources[i][k]: which index of axis i of `input` output index k of axis i takes.
  PickPlan(const ir::Shape& input, const std::vector<std::vector<size_t>>& sources, size_t elem_bytes);

  void run(const uint8_t* from, uint8_t* to) const;

 private:
  std::vector<std::vector<size_t>> offsets_;  // by axis and output index, in bytes
  size_t block_bytes_;                        // what is contiguous on both sides
};

}  // namespace skillet::ref
