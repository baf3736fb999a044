#include "sim_replay.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "capture/capture.h"
#include "kernels/etnaviv/recorder/replay.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/vivante.h"
#include "sim_case.h"
#include "sim_layers.h"
#include "sim_reference.h"

namespace skillet::golden {
namespace {

namespace vivante = ::skillet::sim::vivante;
using kernels::etnaviv::Replay;

Result<fake::SimulatedCore> create_device(const std::string& chip, std::set<std::string>& assumptions) {
  SK_TRY_ASSIGN(vivante::Options options, vivante::options_from_environment());
  options.on_assumption = [&assumptions](std::string_view name) { assumptions.emplace(name); };
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> simulator, vivante::create(chip, options));
  return fake::core_of(std::move(simulator), chip, "sim:" + chip);
}

// Returns why the result of jobs that run cannot be compared; empty if it can.
std::string_view incomparable(const std::string& chip, const ReplayCase& c) {
  const auto* const row = ::skillet::vivante::hw::find_chip(chip);
  const bool signed_is_wrong = row != nullptr && row->generation == 7 && c.has_signed_output();
  for (const char* op : {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}) {
    if (signed_is_wrong && c.has_op(op)) return "int8 weights: the recorded driver does not convert them on V7";
  }
  for (const char* op : {"ADD", "SUB"}) {
    if (signed_is_wrong && c.has_op(op)) return "int8 addition: the recorded driver mixes zero points on V7";
  }
  if (c.has_op("SPLIT") && c.has_op("CONCATENATION"))
    return "recorded tensors overlap: concat and split want one to be in two places";
  return {};
}

bool has_job(const capture::Submission& submission) {
  return std::any_of(submission.buffers.begin(), submission.buffers.end(),
                     [](const auto& buffer) { return buffer.listed; });
}

Result<void> write(Replay& device, uint64_t address, std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const auto to, device.at(address, bytes.size()));
  std::ranges::copy(bytes, to.begin());
  return {};
}

Result<void> place_inputs(const ReplayCase& c, const capture::Submission& submission, Replay& device) {
  size_t next = 0;
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (!buffer.holds_input || !buffer.listed) continue;
    uint64_t at = buffer.address;
    if (next == c.golden.inputs.size()) return error(ErrorCode::malformed, "more input buffers than inputs");
    SK_TRY(write(device, at, c.golden.inputs[next].bytes));
    // The operands of an addition are contiguous in one buffer.
    at += c.golden.inputs[next++].bytes.size();
    const bool both = (c.has_op("ADD") || c.has_op("SUB")) && c.golden.inputs.size() == 2 && next == 1;
    if (both) SK_TRY(write(device, at, c.golden.inputs[next++].bytes));
  }
  return {};
}

// Returns the graph's outputs: buffers that the jobs only write, in the order of their handles.
Result<std::vector<Bytes>> read_outputs(const ReplayCase& c, const capture::Submission& submission, Replay& device) {
  std::vector<Bytes> outputs;
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (!buffer.write || buffer.read || outputs.size() == c.golden.outputs.size()) continue;
    const CaseOutput& tensor = c.golden.outputs[outputs.size()];
    SK_TRY_ASSIGN(const auto from, device.at(buffer.address, tensor.bytes));
    Bytes bytes(from.begin(), from.end());
    // Inside the chip, signed tensors are unsigned: 128 is added.
    if (tensor.type == "INT8") std::for_each(bytes.begin(), bytes.end(), [](uint8_t& byte) { byte ^= 0x80; });
    outputs.push_back(std::move(bytes));
  }
  if (outputs.size() != c.golden.outputs.size())
    return error(ErrorCode::malformed, "{} output buffers, {} outputs", outputs.size(), c.golden.outputs.size());
  return outputs;
}

Result<ReplayRow> simulate_outputs(const std::string& chip, const ReplayCase& c, capture::Capture capture,
                                   const fake::SimulatedCore& core) {
  keep_results(capture);
  SK_TRY_ASSIGN(Replay device, Replay::create(core.core, core.calls));
  const capture::Submission* last = nullptr;
  double milliseconds = 0;
  for (size_t i = 0; i < capture.submissions.size(); ++i) {
    const capture::Submission& submission = capture.submissions[i];
    SK_TRY(device.place(submission).with_context(fmt::format("submission {}", i)));
    if (has_job(submission)) {
      SK_TRY(place_inputs(c, submission, device));
      last = &submission;
    }
    const auto start = std::chrono::steady_clock::now();
    SK_TRY(device.run_placed().with_context(fmt::format("submission {}", i)));
    milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  ReplayRow row{.name = c.name(), .result = ReplayClass::not_comparable, .reason = "the recorded driver sent no job"};
  if (last == nullptr) return row;
  row.reason = incomparable(chip, c);
  auto outputs = read_outputs(c, *last, device);
  if (!outputs.ok() && row.reason.empty()) return std::move(outputs).error();
  const std::vector<Bytes> simulated = outputs.ok() ? std::move(outputs).value() : std::vector<Bytes>();
  row.output_hash = hash_of(simulated);
  if (row.reason.empty()) {
    SK_TRY_ASSIGN(const std::vector<Bytes> expected, expected_outputs(c));
    if (expected.size() != simulated.size())
      return error(ErrorCode::malformed, "{} reference outputs", expected.size());
    row = compare_outputs(c, simulated, expected);
    if (!c.inputs_recorded && row.reason.empty()) row.reason = "recorded input not kept: inputs of our own";
  }
  row.simulated_ms = milliseconds;
  return row;
}

bool is_network(const ReplayCase& c) { return c.golden.set == "coral" && !c.has_op("SPLIT"); }

Result<std::vector<ReplayRow>> simulate_or_fail(const std::string& dir, const std::string& chip,
                                                const std::string& name, std::set<std::string>& assumptions) {
  SK_TRY_ASSIGN(const ReplayCase c, read_replay_case(dir, name));
  SK_TRY_ASSIGN(const capture::Capture capture, capture::read(dir + "/" + chip + "/" + name));
  SK_TRY_ASSIGN(const fake::SimulatedCore core, create_device(chip, assumptions));
  if (is_network(c)) return simulate_layers(c, capture, core);
  SK_TRY_ASSIGN(ReplayRow row, simulate_outputs(chip, c, capture, core));
  return std::vector<ReplayRow>{std::move(row)};
}

}  // namespace

std::vector<ReplayRow> simulate_case(const std::string& dir, const std::string& chip, const std::string& name) {
  std::set<std::string> assumptions;
  auto done = simulate_or_fail(dir, chip, name, assumptions);
  std::vector<ReplayRow> rows = {ReplayRow{.name = name, .result = ReplayClass::fault}};
  if (done.ok())
    rows = std::move(done).value();
  else
    rows[0].reason = done.error().message;
  rows.back().rests_on = std::move(assumptions);  // for a network, the last row is the whole
  return rows;
}

}  // namespace skillet::golden
