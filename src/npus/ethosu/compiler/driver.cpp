// The driver of the family, for Vela's programs and for Skillet's own compiler. cmake/vendors.cmake makes the registry
// that calls driver().
#include "npu/driver.h"

#include <algorithm>

#include "base/leaked.h"
#include "npus/ethosu/compiler/decode.h"
#include "npus/ethosu/compiler/program.h"

namespace skillet::npus::ethosu {
namespace {

constexpr std::string_view kKernelDriver = "ethosu";

const hw::ChipRow& row_of(const npu::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

class EthosUDriver final : public npu::Driver {
 public:
  EthosUDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips())
      chips_.push_back({.name = std::string(chip.name),
                        .family = "ethosu",
                        .title = std::string(chip.title),
                        .row = row++,
                        .is_sold = false});  // shown only on request: no board was tested
  }

  std::string_view name() const override { return "ethosu"; }
  std::span<const npu::Chip> chips() const override { return chips_; }

  Result<npu::Chip> identify(const capture::DeviceInfo& info) const override {
    const hw::ChipRow* const row = info.kernel_driver == kKernelDriver
                                       ? hw::find_device(static_cast<uint32_t>(info.fact("config")), info.compatible)
                                       : nullptr;
    if (row == nullptr) return Error{ErrorCode::unsupported, ""};
    return chips_[static_cast<size_t>(row - hw::chips().data())];
  }

  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return ethosu::supports(row_of(chip), graph, op);
  }
  std::span<const npu::Assumption> assumptions(const npu::Chip&) const override { return ethosu::assumptions(); }
  // The chip rounds as TensorFlow Lite does.
  int tolerance(const npu::Chip&, const ir::Graph&, ir::OpId) const override { return 0; }

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    if (!options.switches.empty())
      return error(ErrorCode::invalid_argument, "no tuning switch '{}'; Ethos-U has none", options.switches[0]);
    return make_program(row_of(chip), graph, options);
  }

  Result<npu::Annotated> decode_as(const npu::Chip& chip, const capture::Submission& submission,
                                   npu::Detail detail) const override {
    return ethosu::decode(submission, detail, row_of(chip).generation());
  }
  npu::HardwareRows hardware_rows(const npu::Chip&) const override {
    npu::HardwareRows out{.descriptors = {&bits::descriptor_of<hw::PayloadConfig>()}, .registers = {}};
    for (const bits::Descriptor& command : hw::commands().registers) out.descriptors.push_back(&command);
    return out;
  }
  // The first operation from Vela decides: Vela compiles a network for one accelerator.
  npu::MadeFor made_for(const ir::Graph& graph) const override {
    const auto op = std::ranges::find_if(graph.ops, is_vela_op);
    if (op == graph.ops.end() || op->inputs.empty() || op->inputs[kCommands] == ir::kNoTensor) return {};
    const auto payload = read_payload(graph.tensor(op->inputs[kCommands]).data);
    if (!payload.ok()) return {};
    npu::MadeFor made{.accelerator = accelerator_of(payload->config, hw::find_configuration(payload->config))};
    for (const npu::Chip& chip : chips_)
      if (row_of(chip).has(payload->config)) made.chips.push_back(chip);
    return made;
  }

 private:
  std::vector<npu::Chip> chips_;
};

}  // namespace

const npu::Driver& driver() {
  const auto& instance = leaked([] { return EthosUDriver(); });
  return instance;
}

}  // namespace skillet::npus::ethosu
