// Decodes a recorded submission to text and fields, by the rows that the encoder packs with.
// Called by driver.cpp (tools) and the golden comparison.
// Must not know: how a driver makes its jobs.
#pragma once

#include "base/result.h"
#include "capture/capture.h"
#include "npu/driver.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = skillet::vivante::hw;

// One LOAD_STATE value of a stream, in order.
struct StateLoad {
  uint32_t address = 0;  // state address, bytes
  uint32_t value = 0;
  size_t word = 0;  // index of the value in the stream
};
// An error names the word at which the stream breaks the packet rules.
Result<std::vector<StateLoad>> parse_stream(std::span<const uint32_t> stream);

// The words of [address, address + words) in a submission's buffers, zero after their stored contents.
Result<std::vector<uint32_t>> read_words(const capture::Submission& submission, uint64_t address, size_t words);

Result<npu::Annotated> decode(const hw::ChipRow& chip, const capture::Submission& submission, npu::Detail detail);

}  // namespace skillet::npus::vivante
