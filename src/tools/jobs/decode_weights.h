// `skillet decode --weights`: extracts the filters of jobs as arrays.
// Called by decode.cpp and the golden test of recorded jobs.
// Must not know: anything of a vendor.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "sim/weights.h"
#include "tools/jobs/recorded_memory.h"

namespace skillet::tools {

// By operation of the submission, job after job.
using SubmissionWeights = std::vector<std::optional<sim::Weights>>;
// `memory`: contents of this submission and all before it.
Result<SubmissionWeights> weights_of(const std::string& chip, const capture::Submission& submission,
                                     const RecordedMemory& memory);

// Keeps only the weights read in that order (npu::Driver::weights_order()), for jobs whose compiler is known.
void settle_order(SubmissionWeights& weights, std::string_view order);

// Writes FOLDER/submissionS_jobJ_weights.npy and ..._biases.npy, and returns a line for each. If a job does not
// determine the order of its weights, also writes ..._weights_ORDER.npy for each other order.
Result<std::string> write_weights(const std::string& folder, size_t index, const SubmissionWeights& weights);
nlohmann::json weights_json(const SubmissionWeights& weights, size_t job);

}  // namespace skillet::tools
