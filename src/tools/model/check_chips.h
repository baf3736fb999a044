// Checks a model on every chip with proven jobs: where operations run, and why not on the NPU. Needs no device.
// Called by `skillet check`.
// Must not know: how a session runs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compile/report.h"
#include "compile/words.h"
#include "graph/ir/graph.h"
#include "npu/chip.h"
#include "runtime/session.h"
#include "tools/model/delegate_claims.h"
#include "tools/time/npu_share.h"

namespace skillet::tools {

struct ModelOp {
  std::string kind, output;
  uint64_t macs = 0;
  std::vector<size_t> from;  // operations that compute its inputs
};
struct ChipCheck {
  npu::Chip chip;
  // By operation of the model. where: npu, cpu, nowhere, both (the passes made several operations), folded (none).
  std::vector<std::string> where, why;
  // Maximum difference of an operation's result to the CPU's, in steps of its output, and its simulated time; below 0:
  // not known.
  std::vector<int> steps;
  std::vector<double> us;
  double layout_us = 0, wall_us = -1;  // moving data between layouts; the whole network, below 0: not known
  double cpu_alone_us = -1;            // the whole network without the NPU
  double time_error = 0;               // relative error of the times
  sim::Clock clock;                    // clock for the times
  size_t cores = 0;                    // number of cores for the times (ProgramTiming)
  std::vector<compile::OpRow> rows;    // by operation after the passes
  compile::ModelUse use;
  size_t npu_parts = 0;
  uint64_t npu_macs = 0;
  NpuShare share;
  std::string advice;
};
struct ChipsReport {
  std::string model;
  compile::Words words = compile::Words::tflite;  // of the model's format
  std::vector<ModelOp> ops;
  uint64_t macs = 0;
  std::vector<ChipCheck> chips;
  bool may_divide = false;  // --host-threads auto may give another partition
};

// By operation of the model.
std::vector<uint64_t> macs_of(const ir::Graph& graph);
// "", "0", "up to 2"
std::string steps_text(int steps);

// Chips with proven operations.
std::vector<npu::Chip> proven_chips();

// Checks these chips; a tuning file is for one of them. `left`: checks what the delegate's defaults give to them,
// without times.
Result<ChipsReport> check_chips(const std::string& model, const ir::Graph& graph,
                                const runtime::SessionOptions& session, const LeftToHost* left);

std::string print_chips(const ChipsReport& report);
std::string chips_json_text(const ChipsReport& report);
// One HTML page without external resources.
std::string chips_html(const ChipsReport& report);

}  // namespace skillet::tools
