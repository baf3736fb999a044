// The calls of a family's driver. cmake/vendors.cmake makes the registry that calls driver().
#include "npu/driver.h"

#include "base/leaked.h"
#include "base/log.h"
#include "npus/rockchip/compiler/assumptions.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/cost.h"
#include "npus/rockchip/compiler/decode.h"
#include "npus/rockchip/compiler/encode.h"
#include "npus/rockchip/compiler/packing.h"
#include "npus/rockchip/compiler/support.h"

namespace skillet::npus::rockchip {
namespace {

const hw::ChipRow& row_of(const npu::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

Result<void> check_registers(const npu::Chip& chip) {
  if (row_of(chip).has_registers()) return {};
  return error(ErrorCode::unsupported, "{}: {}", chip.title, chip.unproven);
}

class RockchipDriver final : public npu::Driver {
 public:
  RockchipDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips()) {
      chips_.push_back({std::string(chip.name), "rockchip", std::string(chip.title), row++, std::string(chip.missing)});
      chips_.back().one_core_at_a_time = chip.has(hw::kOneCoreAtATime);
      chips_.back().channels_of_a_shift = chip.has(hw::kOneShift) ? chip.kernel_group : 0;
    }
  }

  std::string_view name() const override { return "rockchip"; }
  std::span<const npu::Chip> chips() const override { return chips_; }

  // The kernel reports only the device tree's name of the cores.
  Result<npu::Chip> identify(const capture::DeviceInfo& info) const override {
    for (const npu::Chip& chip : chips_) {
      const std::string_view compatible = row_of(chip).compatible;
      if (!compatible.empty() && compatible == info.compatible) return chip;
    }
    return Error{ErrorCode::unsupported, ""};
  }

  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return rockchip::supports(row_of(chip), graph, op);
  }

  std::span<const npu::Assumption> assumptions(const npu::Chip& chip) const override {
    const Packing* const packing = packing_of(row_of(chip));
    return packing != nullptr ? packing->assumptions() : rockchip::assumptions();
  }

  npu::MadeConstants made_constants(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    return rockchip::made_constants(graph, op);
  }

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, tuning_for(row_of(chip), options));
    SK_TRY_ASSIGN(const Lowered lowered, lower(row_of(chip), graph, tuning, options.keep_intermediates));
    auto program = encode(row_of(chip), graph, lowered, tuning, options.keep_intermediates);
    if (program.ok() && log::debug_flag("stream")) log::write(log::Level::info, npu::print(*program));
    return program;
  }

  Result<std::vector<npu::Choice>> choices(const npu::Chip& chip, const ir::Graph& graph,
                                           const npu::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, tuning_for(row_of(chip), options));
    if (tuning.has(hw::kSurfacesOnly)) return std::vector<npu::Choice>();
    return rockchip::choices(row_of(chip), graph, tuning);
  }

  std::optional<npu::CostModel> costs(const npu::Chip& chip, const npu::Measured& measured) const override {
    return rockchip::costs(row_of(chip), measured);
  }

  std::span<const npu::TuningSwitch> switches() const override { return tuning_switches(); }

  Result<npu::Annotated> decode_as(const npu::Chip& chip, const capture::Submission& submission,
                                   npu::Detail detail) const override {
    SK_TRY(check_registers(chip));
    return rockchip::decode(row_of(chip), submission, detail);
  }

  npu::HardwareRows hardware_rows(const npu::Chip& chip) const override {
    if (!row_of(chip).has_registers()) return {};
    npu::HardwareRows out{.descriptors = {&bits::descriptor_of<hw::Command>(), &bits::descriptor_of<hw::BlockEnable>()},
                          .registers = {}};
    for (const bits::Descriptor& one : hw::registers_of(row_of(chip)).registers) out.descriptors.push_back(&one);
    return out;
  }

 private:
  std::vector<npu::Chip> chips_;
};

}  // namespace

const npu::Driver& driver() {
  const auto& instance = leaked([] { return RockchipDriver(); });
  return instance;
}

}  // namespace skillet::npus::rockchip
