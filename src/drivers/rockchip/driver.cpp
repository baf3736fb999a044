// The five calls. cmake/vendors.cmake makes the registry that calls driver().
#include "driver/driver.h"

#include "base/leaked.h"
#include "base/log.h"
#include "drivers/rockchip/assumptions.h"
#include "drivers/rockchip/choices.h"
#include "drivers/rockchip/cost.h"
#include "drivers/rockchip/decode.h"
#include "drivers/rockchip/encode.h"
#include "drivers/rockchip/support.h"

namespace skillet::drivers::rockchip {
namespace {

const hw::ChipRow& row_of(const driver::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

Result<Tuning> all_of(const driver::CompileOptions& options) {
  SK_TRY_ASSIGN(Tuning tuning, tuning_of(options));
  const bool tries = options.takes_unproven() && options.tuning != driver::Tuning::recorded;
  tuning.packed_pixels = (tuning.packed_pixels || tries) && options.may_have("packed_pixels");
  tuning.fused_additions = (tuning.fused_additions || tries) && options.may_have("fused_additions");
  return tuning;
}

// Of a chip whose registers are packed otherwise no row would tell the truth.
Result<void> check_registers(const driver::Chip& chip) {
  if (row_of(chip).has(hw::kRegisters3588)) return {};
  return error(ErrorCode::unsupported, "{}: {}", chip.title, chip.unproven);
}

class RockchipDriver final : public driver::Driver {
 public:
  RockchipDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips()) {
      chips_.push_back({std::string(chip.name), "rockchip", std::string(chip.title), row++, std::string(chip.missing)});
    }
  }

  std::string_view name() const override { return "rockchip"; }
  std::span<const driver::Chip> chips() const override { return chips_; }

  // The kernel tells nothing but the device tree's name of the cores.
  Result<driver::Chip> identify(const capture::DeviceInfo& info) const override {
    for (const driver::Chip& chip : chips_) {
      const std::string_view compatible = row_of(chip).compatible;
      if (!compatible.empty() && compatible == info.compatible) return chip;
    }
    return Error{ErrorCode::unsupported, ""};
  }

  driver::Support supports(const driver::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return rockchip::supports(row_of(chip), graph, op);
  }

  std::span<const driver::Assumption> assumptions() const override { return rockchip::assumptions(); }

  driver::MadeConstants made_constants(const driver::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    return rockchip::made_constants(graph, op);
  }

  Result<driver::Program> compile(const driver::Chip& chip, const ir::Graph& graph,
                                  const driver::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, all_of(options));
    SK_TRY_ASSIGN(const Lowered lowered, lower(row_of(chip), graph, tuning, options.keep_intermediates));
    auto program = encode(row_of(chip), graph, lowered, tuning, options.keep_intermediates);
    if (program.ok() && log::debug_flag("stream")) log::write(log::Level::info, driver::print(*program));
    return program;
  }

  Result<std::vector<driver::Choice>> choices(const driver::Chip& chip, const ir::Graph& graph,
                                              const driver::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, all_of(options));
    return rockchip::choices(row_of(chip), graph, tuning);
  }

  const driver::CostModel* costs(const driver::Chip& chip) const override { return rockchip::costs(row_of(chip)); }

  std::span<const driver::TuningSwitch> switches() const override { return tuning_switches(); }

  Result<driver::Annotated> decode_as(const driver::Chip& chip, const capture::Submission& submission,
                                      driver::Detail detail) const override {
    SK_TRY(check_registers(chip));
    return rockchip::decode(row_of(chip), submission, detail);
  }

  driver::HardwareRows hardware_rows(const driver::Chip& chip) const override {
    if (!check_registers(chip).ok()) return {};
    driver::HardwareRows out{
        .descriptors = {&bits::descriptor_of<hw::Command>(), &bits::descriptor_of<hw::BlockEnable>()}, .registers = {}};
    for (const bits::Descriptor& one : hw::registers().registers) out.descriptors.push_back(&one);
    return out;
  }

 private:
  std::vector<driver::Chip> chips_;
};

}  // namespace

const driver::Driver& driver() {
  static const auto& instance = leaked<RockchipDriver>();
  return instance;
}

}  // namespace skillet::drivers::rockchip
