// `skillet decode --weights`: the filters that jobs multiply with, as arrays.
// Called by decode.cpp and the golden test of recorded jobs.
// Must not know: a vendor's anything.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "sim/weights.h"
#include "tools/jobs/recorded_memory.h"

namespace skillet::tools {

// By operation of the submission, all its jobs one after the other.
using SubmissionWeights = std::vector<std::optional<sim::Weights>>;
// `memory` has what this submission and those before it hold.
Result<SubmissionWeights> weights_of(const std::string& chip, const capture::Submission& submission,
                                     const RecordedMemory& memory);

// Keeps the reading of that order alone (npu::Driver::weights_order()), for jobs of which it is known who made them.
void settle_order(SubmissionWeights& weights, std::string_view order);

// FOLDER/submissionS_jobJ_weights.npy, and ..._biases.npy; a line for each. If a job does not show the order of its
// weights, the other readings too: ..._weights_ORDER.npy.
Result<std::string> write_weights(const std::string& folder, size_t index, const SubmissionWeights& weights);
nlohmann::json weights_json(const SubmissionWeights& weights, size_t job);

}  // namespace skillet::tools
