// ForwardingDriver: forwards all calls to another driver; a subclass overrides some.
// Called by wrappers of drivers, such as runtime/program_cache.h.
// Must not know: anything of one vendor.
#pragma once

#include "npu/driver.h"

namespace skillet::npu {

class ForwardingDriver : public Driver {
 public:
  // `inner` is borrowed.
  explicit ForwardingDriver(const Driver& inner) : inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  std::span<const Chip> chips() const override { return inner_.chips(); }
  Result<Chip> identify(const capture::DeviceInfo& info) const override { return inner_.identify(info); }
  Support supports(const Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.supports(chip, graph, op);
  }
  std::span<const Assumption> assumptions(const Chip& chip) const override { return inner_.assumptions(chip); }
  int tolerance(const Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.tolerance(chip, graph, op);
  }
  size_t weight_scales_max(const Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.weight_scales_max(chip, graph, op);
  }
  MadeConstants made_constants(const Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.made_constants(chip, graph, op);
  }
  Result<Program> compile(const Chip& chip, const ir::Graph& graph, const CompileOptions& options) const override {
    return inner_.compile(chip, graph, options);
  }
  std::optional<CostModel> costs(const Chip& chip, const Measured& measured) const override {
    return inner_.costs(chip, measured);
  }
  Result<std::vector<Choice>> choices(const Chip& chip, const ir::Graph& graph,
                                      const CompileOptions& options) const override {
    return inner_.choices(chip, graph, options);
  }
  std::span<const TuningSwitch> switches() const override { return inner_.switches(); }
  Result<std::vector<Compression>> compression(const Chip& chip, const ir::Graph& graph,
                                               const CompileOptions& options) const override {
    return inner_.compression(chip, graph, options);
  }
  Result<Annotated> decode_as(const Chip& chip, const capture::Submission& submission, Detail detail) const override {
    return inner_.decode_as(chip, submission, detail);
  }
  std::string_view weights_order() const override { return inner_.weights_order(); }
  HardwareRows hardware_rows(const Chip& chip) const override { return inner_.hardware_rows(chip); }

 protected:
  const Driver& inner() const { return inner_; }

 private:
  const Driver& inner_;
};

}  // namespace skillet::npu
