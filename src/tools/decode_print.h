// What `skillet decode` shows of a submission: a line for each job, fields with their words, buffers.
// Called by decode.cpp.
// Must not know: where the submission comes from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "driver/driver.h"

namespace skillet::tools {

// A line for each operation: what it is, shapes, which buffers it reads and writes.
std::string print_operations(const driver::Annotated& decoded, const capture::Submission& submission);
// Every field, zeros too: value, words, bits, how sure the row is, what it says.
std::string print_all_fields(const driver::Annotated& decoded, const capture::Submission& submission);
// Handle, address, size, contents with their hash, how the submission lists it, what its operations have there.
std::string print_buffers(const driver::Annotated& decoded, const capture::Submission& submission);
nlohmann::json buffers_json(const driver::Annotated& decoded, const capture::Submission& submission);

std::string_view evidence_name(bits::Evidence evidence);
// "word 5 bits 31:26 + word 0 bits 19:6": low part last, as the value is read.
std::string print_bits(const bits::Row& row);

}  // namespace skillet::tools
