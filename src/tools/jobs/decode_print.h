// What `skillet decode` shows of a submission: a line for each job, fields with their words, buffers.
// Called by decode.cpp.
// Must not know: where the submission comes from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "npu/driver.h"
#include "tools/jobs/decode_weights.h"

namespace skillet::tools {

// A submission and all that was asked for about it.
struct Decoded {
  npu::Annotated fields;
  capture::Submission submission;
  size_t index = 0;              // in the capture
  std::vector<std::string> ops;  // of a model, by operation of the submission; empty: no model was given
  SubmissionWeights weights;     // empty: not asked for
};

// A line for each operation: what it is, shapes, which buffers it reads and writes, which operation of the model it is.
std::string print_operations(const Decoded& decoded);
// Every field, zeros too: value, words, bits, how sure the row is, what it says.
std::string print_all_fields(const npu::Annotated& decoded, const capture::Submission& submission);
// Handle, address, size, contents with their hash, how the submission lists it, what its operations have there.
// Each descriptor and register as a C++ initialiser of its struct, in the order of the commands.
std::string print_source(const npu::Annotated& decoded, const capture::Submission& submission);
std::string print_buffers(const npu::Annotated& decoded, const capture::Submission& submission);
nlohmann::json to_json(const Decoded& decoded);
// Of the device that a capture is of.
nlohmann::json to_json(const capture::DeviceInfo& device);

std::string_view evidence_name(bits::Evidence evidence);
// "word 5 bits 31:26 + word 0 bits 19:6": low part last, as the value is read.
std::string print_bits(const bits::Row& row);

}  // namespace skillet::tools
