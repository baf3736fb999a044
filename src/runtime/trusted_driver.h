// TrustedDriver: a driver that refuses what its device has been seen to compute wrong.
// Called by compile_for().
// Must not know: how that was found out, a vendor's anything.
#pragma once

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

}  // namespace skillet::runtime
