// Results: the outputs of a network as files (--output), and against files that say what they should be (--expect).
// Called by `skillet run` and `skillet replay`.
// Must not know: devices, sessions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {

// FILE.npy: the one output; FILE.npz: all outputs of one inference; any other name: a folder with FILE.npy for each
// output, in a folder for each inference where there are several.
class ResultPlace {
 public:
  // Error when the place cannot take that many. `inferences`: their names; none: not known how many there will be.
  static Result<ResultPlace> create(std::string path, const ir::Graph& graph, std::span<const std::string> inferences);
  // Whether it can be written to, before the work.
  Result<void> check() const;
  // Outputs in the graph's order; nothing of an earlier inference changes.
  Result<void> write(size_t inference, std::span<const Bytes> outputs) const;
  Result<std::vector<Bytes>> read(size_t inference) const;

 private:
  std::string folder_of(size_t inference) const;
  std::string path_;
  std::vector<ir::Tensor> outputs_;  // without contents
  ArrayNames arrays_;                // of the outputs
  std::vector<std::string> names_;   // by inference; none: numbers
  bool has_folders_ = false;
};

// How one tensor differs from what it should be, in stored units or, where it is float, real ones.
struct Deviation {
  int64_t differing = 0, elems = 0;  // by more than the tolerance
  double worst = 0;                  // NaN: one of the two is no number
  int64_t at = 0;                    // where it is worst
};
Deviation deviation(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted,
                    double tolerance);
// "output 'x': 12 of 1,001 elements differ by more than 1, worst at [0, 17]: 5, expected 2".
std::string describe(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted,
                     const Deviation& deviation, double tolerance);

}  // namespace skillet::tools
