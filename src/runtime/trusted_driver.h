// TrustedDriver: a driver that refuses operations that its device has been seen to compute wrong.
// Called by compile_for().
// Must not know: how that was found out, anything of one vendor.
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

  // A refuted assumption with the name of a tuning switch is no reason to refuse if compile() can do without the
  // switch.
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override;

 private:
  const Trust& trust_;
};

// Tuning switches that stand on refuted assumptions, for CompileOptions::without.
std::vector<std::string> refuted_switches(const npu::Driver& driver, const Trust& trust);
// An operation as a graph of its own, with its constants.
ir::Graph operation_alone(const ir::Graph& graph, ir::OpId op);
// The key of an operation and its constants in TrustEntry::name, independent of the names of its tensors.
std::string operation_key(const ir::Graph& graph, ir::OpId op);
compile::ModelKeys model_keys(const ir::Graph& model);
// All keys of an operation of the compiled graph: its own, and those of the model's operations that it computes. If
// only its own key were refused, passes would rewrite the model's operations in another form, with another key.
std::set<std::string> operation_names(const ir::Graph& graph, ir::OpId op, std::span<const passes::Rewrite> rewrites,
                                      const compile::ModelKeys& keys);
// Operations of a model that were wrong in any form, by Op::source_index.
compile::Kept refuted_operations(const ir::Graph& model, const Trust& trust);

}  // namespace skillet::runtime
