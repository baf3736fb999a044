// Whole networks, layer by layer: each layer's simulated result against the reference kernel on the inputs of the
// simulated layer, so that differences do not accumulate. Called by sim_replay.cpp. Must not know: how results are
// printed.
#pragma once

#include <vector>

#include "capture/capture.h"
#include "kernels/fake/simulated.h"
#include "sim_case.h"
#include "sim_replay.h"

namespace skillet::golden {

// For networks of convolutions, depthwise convolutions and additions; operations that the recorded driver left to the
// CPU run on the reference kernels. Error when jobs and layers do not match.
Result<std::vector<ReplayRow>> simulate_layers(const ReplayCase& c, const capture::Capture& capture,
                                               const fake::SimulatedCore& core);

// The recorded device computed nothing. So the results of simulated jobs stay in the buffers, and only new contents of
// a submission come from the recording.
void keep_results(capture::Capture& capture);

// Compares two results; elements are signed or unsigned bytes.
ReplayRow compare_bytes(std::string name, std::span<const uint8_t> simulated, std::span<const uint8_t> expected,
                        bool is_signed);
uint64_t hash_of(const std::vector<Bytes>& outputs);
// Compares all outputs of a case, as one row.
ReplayRow compare_outputs(const ReplayCase& c, const std::vector<Bytes>& simulated, const std::vector<Bytes>& expected);

}  // namespace skillet::golden
