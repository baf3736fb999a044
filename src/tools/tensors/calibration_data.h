// Reads calibration data for `skillet quantize`: inputs of many inferences, from a folder or a file of arrays.
// Called by quantize.cpp.
// Must not know: its use.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

struct CalibrationData {
  std::vector<std::vector<Bytes>> seen, held;  // by inference, by input of the graph; held: for comparison
  size_t found = 0;                            // inferences in the data; at most kMostInferences are used
  size_t repeats = 0;                          // inferences left out because they equal an earlier one
};
// A sufficient number, and a maximum: all are in memory at once. Larger data is sampled evenly.
inline constexpr size_t kFewInferences = 16, kMostInferences = 64;

// `place`: a folder of pictures (networks with one image input), of .npz files with one inference each, or of .npy
// files (networks with one input); or F.npz or F.npy, whose arrays have the inferences as their first dimension. Every
// fourth inference, in the order of names, is held back. Repeated inferences count once, so that held data is never
// used for calibration. Warns of inputs whose pixels (or elements, if there are none) are all equal within every
// inference. Errors name the file, the tensor, its shape and its type.
Result<CalibrationData> read_calibration_data(const std::string& place, const ir::Graph& graph,
                                              const std::string& float_pixels);

}  // namespace skillet::tools
