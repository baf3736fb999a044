// TrustedDriver: a driver that refuses what its device has been seen to compute wrong.
// Called by compile_for().
// Must not know: how that was found out, a vendor's anything.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "npu/forwarding_driver.h"
#include "runtime/trust.h"

namespace skillet::runtime {

class TrustedDriver : public npu::ForwardingDriver {
 public:
  // Both are borrowed.
  TrustedDriver(const npu::Driver& inner, const Trust& trust) : ForwardingDriver(inner), trust_(trust) {}

  // An assumption of a tuning switch's name is no reason to refuse where compile() can do without the switch.
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override;

 private:
  const Trust& trust_;
};

// Tuning switches that stand on what was refuted, for CompileOptions::without.
std::vector<std::string> refuted_switches(const npu::Driver& driver, const Trust& trust);
// An operation as a graph of its own, with its constants.
ir::Graph operation_alone(const ir::Graph& graph, ir::OpId op);
// The name of an operation and its constants in TrustEntry::name, whatever its tensors are called.
std::string operation_key(const ir::Graph& graph, ir::OpId op);
compile::ModelKeys model_keys(const ir::Graph& model);
// All names of an operation of the compiled graph: its own and those of the model's operations that it computes. Passes
// would make something else of these, with another name, where its own alone is refused.
std::set<std::string> operation_names(const ir::Graph& graph, ir::OpId op, std::span<const passes::Rewrite> rewrites,
                                      const compile::ModelKeys& keys);
// Operations of a model that were wrong in whatever form, by Op::source_index.
compile::Kept refuted_operations(const ir::Graph& model, const Trust& trust);

}  // namespace skillet::runtime
