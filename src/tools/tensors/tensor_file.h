// Contents of tensors as files: .npy, .npz and raw ones; and the reproducible random stream.
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

// Names of files in a folder: letters, digits, '.', '-' and '_' only, none twice. One that is such a name is kept.
std::vector<std::string> file_keys(std::span<const std::string> names);

// What the arrays of a .npz file may be called that are a network's inputs or outputs, in order.
struct ArrayNames {
  std::vector<std::string> names;  // the tensors' own; several may be the same
  std::vector<std::string> keys;   // as we write them in an archive: the names, unless empty, twice or unsafe
  std::vector<std::string> files;  // as we write them in a folder: file_keys() of them
};
ArrayNames array_names(const ir::Graph& graph, std::span<const ir::TensorId> tensors);

// FILE.npy, or an array of FILE.npz: type and shape must be the tensor's (little-endian, C order); any other name:
// exactly its bytes. The tensor is that at `index` of `arrays`. `what`: "input", for messages.
Result<Bytes> read_tensor_file(const std::string& path, const ir::Tensor& tensor, const ArrayNames& arrays,
                               size_t index, std::string_view what = "input");
// FILE.npy, or an array of FILE.npz, with a dimension more in front or another batch than the tensor's one: the
// tensor's contents for each of several inferences.
Result<std::vector<Bytes>> read_tensor_rows(const std::string& path, const ir::Tensor& tensor, const ArrayNames& arrays,
                                            size_t index);
// Says which arrays of FILE.npz are for none of the inputs.
Result<void> warn_of_other_arrays(const std::string& path, const ir::Graph& graph);
// The part after reading the file.
Result<Bytes> parse_npy(std::span<const uint8_t> file, const ir::Tensor& tensor, std::string_view what = "input");
// The contents of a tensor as a .npy file. Error where NumPy has no such type.
Result<Bytes> npy_of(const ir::Tensor& tensor, std::span<const uint8_t> bytes);

// splitmix64, one stream over all inputs in order: the low byte(s) of each draw; float32: (draw >> 40) / 2^24.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : random_(seed) {}
  Result<Bytes> fill(const ir::Tensor& tensor);

 private:
  SplitMix64 random_;
};
// Of all inputs of a graph.
Result<std::vector<Bytes>> random_inputs(uint64_t seed, const ir::Graph& graph);

}  // namespace skillet::tools
