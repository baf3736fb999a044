// Encodes device operations to descriptors, coefficient buffers and command streams of a Program.
// Called by driver.cpp.
// Must not know: the meaning of graphs, device addresses (they become relocations).
#pragma once

#include "base/result.h"
#include "npu/driver.h"
#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// A submission of old kernels has 0x4000 words; the longest operation takes less than 256.
constexpr size_t kJobWords = 0x4000 - 256;

struct EncodeOptions {
  // A job ends with the operation that exceeds this number of words, or with the last one that writes to the same slot.
  size_t job_words = kJobWords;
  bool share_memory = true;     // reuses memory of intermediate tensors; they cannot be read then
  bool join_constants = false;  // on the device
};
Result<npu::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, Lowered lowered,
                            const EncodeOptions& options = {});

}  // namespace skillet::npus::vivante
