// Prints a submission for `skillet decode`: a line for each job, fields with their words, buffers.
// Called by decode.cpp.
// Must not know: the source of the submission.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "npu/driver.h"
#include "tools/jobs/decode_weights.h"

namespace skillet::tools {

// A submission and all requested facts about it.
struct Decoded {
  npu::Annotated fields;
  capture::Submission submission;
  size_t index = 0;              // index in the capture
  std::vector<std::string> ops;  // operations of the model, by operation of the submission; empty: no model was given
  SubmissionWeights weights;     // empty: not requested
};

// A line for each operation: kind, shapes, buffers it reads and writes, and its operation of the model.
std::string print_operations(const Decoded& decoded);
// Every field, also zeros: value, words, bits, evidence and documentation of its row.
std::string print_all_fields(const npu::Annotated& decoded, const capture::Submission& submission);
// Each descriptor and register as a C++ initialiser of its struct, in the order of the commands.
std::string print_source(const npu::Annotated& decoded, const capture::Submission& submission);
// A line for each buffer: handle, address, size, hash of its contents, access in the submission, roles for operations.
std::string print_buffers(const npu::Annotated& decoded, const capture::Submission& submission);
nlohmann::json to_json(const Decoded& decoded);
// The recorded device.
nlohmann::json to_json(const capture::DeviceInfo& device);

std::string_view evidence_name(bits::Evidence evidence);
// "word 5 bits 31:26 + word 0 bits 19:6": low part last, in the order of the value's bits.
std::string print_bits(const bits::Row& row);

}  // namespace skillet::tools
