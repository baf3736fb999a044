// What a person can do about operations that the NPU does not take: reasons in groups, and how to make the model fit.
// Called by tools that report, and the delegate.
// Must not know: a vendor's reasons beyond their words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/report.h"
#include "compile/words.h"
#include "graph/passes/passes.h"

namespace skillet::compile {

// Why an op is where it is, and what passes changed about it, for a column of a table.
std::string remarks(const OpRow& row);

struct ReasonGroup {
  std::string reason;
  std::string form;            // the same without numbers: what the ops share
  size_t ops = 0, others = 0;  // others: of them with other numbers
  npu::Remedy remedy = npu::Remedy::none;
  double cpu_us = -1;  // of all of them; below 0: not known
  bool nowhere = false;

  // "none: it stays on the CPU, costs 0.12 ms (simulated)"
  std::string remedy_text(Words words) const;
};
// Why ops are not on the NPU: what nothing runs first, then what costs most there, then what is most frequent.
std::vector<ReasonGroup> group_reasons(std::span<const OpRow> rows);

// Ops that stay on the CPU for no remedy, but that passes make into others the NPU takes once unproven=verify is given,
// as `with_unproven` (the same graph planned with it) has them: that is their remedy. `compiled`: what `rows` are of.
void advise_unproven(std::span<OpRow> rows, const Compiled& compiled, const Compiled& with_unproven);

// Variables, loops, branches and calls: no NPU computes them, and no other form of the model's numbers helps.
bool keeps_state_or_branches(const ir::Op& op);

// Who runs what the NPU does not take: our CPU kernels, or a TensorFlow Lite host, which has all operations.
enum class Rest : uint8_t { on_our_cpu, in_the_host };

// How the numbers of a network are stored, where that keeps it off NPUs or, with a driver, off this chip, and what to
// do; empty: nothing to say.
std::string quantization_advice(const ir::Graph& graph, const passes::Target& target, Words words,
                                Rest rest = Rest::on_our_cpu);

}  // namespace skillet::compile
