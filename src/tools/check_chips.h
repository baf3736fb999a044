// A model on every chip that our drivers know well: what runs where, and why not on the NPU. Needs no device.
// Called by `skillet check`.
// Must not know: how a session runs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compile/report.h"
#include "driver/chip.h"
#include "ir/graph.h"

namespace skillet::tools {

struct ModelOp {
  std::string kind, output;
  uint64_t macs = 0;
  std::vector<size_t> from;  // operations that make its inputs
};
struct ChipCheck {
  driver::Chip chip;
  // By operation of the model. where: npu, cpu, nowhere, both (the passes made several of it), folded (none).
  std::vector<std::string> where, why;
  // How far an operation's result may be off the CPU's, in steps of its output, and what it takes there, simulated;
  // below 0: not known.
  std::vector<std::string> error;
  std::vector<double> us;
  double layout_us = 0, wall_us = -1;  // moving data between layouts; the whole network, below 0: not known
  double time_error = 0;               // share of the times
  std::vector<compile::OpRow> rows;    // by operation after the passes
  size_t npu_ops = 0, npu_parts = 0;
  uint64_t npu_macs = 0;
  std::string advice;
};
struct ChipsReport {
  std::string model;
  std::vector<ModelOp> ops;
  uint64_t macs = 0;
  std::vector<ChipCheck> chips;

  // Of the multiply-accumulates; of the operations where there are none.
  double percent_on_npu(const ChipCheck& chip) const;
  bool has_op_nowhere() const;
};

// Chips of which something is proven to work.
Result<ChipsReport> check_chips(const std::string& model, const ir::Graph& graph, bool allow_unproven);

std::string print_chips(const ChipsReport& report);
std::string chips_json_text(const ChipsReport& report);
// One page, without anything from elsewhere.
std::string chips_html(const ChipsReport& report);

}  // namespace skillet::tools
