// Reads and writes tensor contents as .npy, .npz and raw files; reproducible random values.
// Called by `skillet run` and the benchmarks.
// Must not know: devices, sessions.
#pragma once

#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/splitmix64.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// Converts names to file names: letters, digits, '.', '-' and '_' only, all different. A name that is valid stays.
std::vector<std::string> file_keys(std::span<const std::string> names);

// Possible names of arrays in a .npz file for a network's inputs or outputs, in order.
struct ArrayNames {
  std::vector<std::string> names;  // the tensors' own; may repeat
  std::vector<std::string> keys;   // names that we write in an archive: the tensors', unless empty, repeated or unsafe
  std::vector<std::string> files;  // names that we write in a folder: file_keys() of the names
};
ArrayNames array_names(const ir::Graph& graph, std::span<const ir::TensorId> tensors);

// FILE.npy, or an array of FILE.npz: type and shape must be the tensor's (little-endian, C order); any other name:
// exactly its bytes. `index`: place of the tensor in `arrays`. `what`: "input", for messages.
Result<Bytes> read_tensor_file(const std::string& path, const ir::Tensor& tensor, const ArrayNames& arrays,
                               size_t index, std::string_view what = "input");
// FILE.npy, or an array of FILE.npz, with an additional first dimension or with another batch size: contents of the
// tensor for several inferences.
Result<std::vector<Bytes>> read_tensor_rows(const std::string& path, const ir::Tensor& tensor, const ArrayNames& arrays,
                                            size_t index);
// Warns of arrays in FILE.npz that are for none of the inputs.
Result<void> warn_of_other_arrays(const std::string& path, const ir::Graph& graph);
// Parses a file that was read before.
Result<Bytes> parse_npy(std::span<const uint8_t> file, const ir::Tensor& tensor, std::string_view what = "input");
// The contents of a tensor as a .npy file. Error: NumPy has no such type.
Result<Bytes> npy_of(const ir::Tensor& tensor, std::span<const uint8_t> bytes);

// splitmix64, one stream over all inputs in order: the low byte(s) of each draw; float32: (draw >> 40) / 2^24.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : random_(seed) {}
  Result<Bytes> fill(const ir::Tensor& tensor);

 private:
  SplitMix64 random_;
};
// Random values for all inputs of a graph. Indices are within the rows that ops select by them.
Result<std::vector<Bytes>> random_inputs(uint64_t seed, const ir::Graph& graph);

}  // namespace skillet::tools
