// What `skillet quantize` calibrates with: the inputs of many inferences, from a folder or a file of arrays.
// Called by quantize.cpp.
// Must not know: what is made of them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

struct CalibrationData {
  std::vector<std::vector<Bytes>> seen, held;  // by inference, by input of the graph
  size_t found = 0;                            // inferences in the data; no more than kMostInferences are taken
  size_t repeats = 0;                          // of those taken, left out: equal to one before them
};
// So many do; the rest of larger data is left out, evenly: all are in memory at once.
inline constexpr size_t kFewInferences = 16, kMostInferences = 64;

// `place`: a folder of pictures (networks with one image input), of .npz files with an inference each, or of .npy files
// (networks with one input); or F.npz or F.npy, whose arrays have the number of inferences in front. A quarter, every
// fourth inference in the order of names, is held back. An inference counts once, however often
// the data repeats it: what is held back is never what calibrates. Warns of inputs whose pixels (or elements, where
// there are none) are all equal within every inference. Errors name the file, the tensor, its shape and its type.
Result<CalibrationData> read_calibration_data(const std::string& place, const ir::Graph& graph,
                                              const std::string& float_pixels);

}  // namespace skillet::tools
