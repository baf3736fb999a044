// Contents of input tensors that are not pictures: .npy and raw files, and the reproducible random stream.
// Called by `skillet run` and the benchmarks.
// Must not know: devices, sessions.
#pragma once

#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/splitmix64.h"
#include "ir/graph.h"

namespace skillet::tools {

// FILE.npy: type and element count must be the tensor's (little-endian, C order); any other name: exactly its bytes.
Result<Bytes> read_tensor_file(const std::string& path, const ir::Tensor& tensor);
// The part after reading the file.
Result<Bytes> parse_npy(std::span<const uint8_t> file, const ir::Tensor& tensor);

// splitmix64, one stream over all inputs in order: the low byte(s) of each draw; float32: (draw >> 40) / 2^24.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : random_(seed) {}
  Result<Bytes> fill(const ir::Tensor& tensor);

 private:
  SplitMix64 random_;
};

}  // namespace skillet::tools
