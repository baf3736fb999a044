// Advice about operations that the NPU does not take: reasons in groups, and how to change the model.
// Called by tools that report, and the delegate.
// Must not know: how a vendor's driver decides; only its reasons' text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/report.h"
#include "compile/words.h"
#include "graph/passes/passes.h"

namespace skillet::compile {

// Why an op is on the NPU or the CPU, and what passes changed about it, for a column of a table.
std::string remarks(const OpRow& row);

struct ReasonGroup {
  std::string reason;
  std::string form;            // the reason without numbers, which all ops of the group share
  size_t ops = 0, others = 0;  // others: those with other numbers
  npu::Remedy remedy = npu::Remedy::none;
  double cpu_us = -1;  // of all these ops; below 0: not known
  bool nowhere = false;

  // "none: it stays on the CPU, costs 0.12 ms (simulated)"
  std::string remedy_text(Words words) const;
};
// Why ops are not on the NPU: first ops that nothing runs, then by time on the CPU, then by number of ops.
std::vector<ReasonGroup> group_reasons(std::span<const OpRow> rows);

// Sets the remedy of ops that have no other one: they stay on the CPU, but with unproven=verify passes turn them into
// ops that the NPU takes, as `with_unproven` (the same graph, planned with it) shows. `compiled`: the source of `rows`.
void advise_unproven(std::span<OpRow> rows, const Compiled& compiled, const Compiled& with_unproven);

// Variables, loops, branches and calls: no NPU computes them, and no other quantization helps.
bool keeps_state_or_branches(const ir::Op& op);

// What runs the ops that the NPU does not take: our CPU kernels, or a TensorFlow Lite host, which has all operations.
enum class Rest : uint8_t { on_our_cpu, in_the_host };

// Describes a quantization of the network that no NPU supports or, with a driver, that this chip does not, and the
// remedy; empty: no advice.
std::string quantization_advice(const ir::Graph& graph, const passes::Target& target, Words words,
                                Rest rest = Rest::on_our_cpu);

}  // namespace skillet::compile
