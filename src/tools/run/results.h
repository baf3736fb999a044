// Results: writes a network's outputs to files (--output), and reads expected outputs from files (--expect).
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

// FILE.npy: the only output; FILE.npz: all outputs of one inference; any other name: a folder with FILE.npy for each
// output, in a subfolder for each inference if there are several.
class ResultPlace {
 public:
  // Error: the place cannot hold that many. `inferences`: their names; empty: their number is unknown.
  static Result<ResultPlace> create(std::string path, const ir::Graph& graph, std::span<const std::string> inferences);
  // Checks before the run that it is writable.
  Result<void> check() const;
  // `outputs`: in the graph's order. Files of earlier inferences are not changed.
  Result<void> write(size_t inference, std::span<const Bytes> outputs) const;
  Result<std::vector<Bytes>> read(size_t inference) const;

 private:
  std::string folder_of(size_t inference) const;
  std::string path_;
  std::vector<ir::Tensor> outputs_;  // without contents
  ArrayNames arrays_;                // for the outputs
  std::vector<std::string> names_;   // by inference; empty: numbers
  bool has_folders_ = false;
};

// How one tensor differs from the expected one, in stored units (floats: real units).
struct Deviation {
  int64_t differing = 0, elems = 0;  // differing: by more than the tolerance
  double worst = 0;                  // NaN: only one of the two is a number
  int64_t at = 0;                    // index of the worst element
};
Deviation deviation(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted,
                    double tolerance);
// "output 'x': 12 of 1,001 elements differ by more than 1, worst at [0, 17]: 5, expected 2".
std::string describe(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted,
                     const Deviation& deviation, double tolerance);

}  // namespace skillet::tools
