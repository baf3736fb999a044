// The toy's five calls. cmake/vendors.cmake makes the registry that calls driver().
#include "driver/driver.h"

#include "base/leaked.h"
#include "drivers/toy/decode.h"
#include "drivers/toy/encode.h"

namespace skillet::drivers::toy {
namespace {

const hw::ChipRow& row_of(const driver::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

class ToyDriver final : public driver::Driver {
 public:
  ToyDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips())
      chips_.push_back({std::string(chip.name), "toy", std::string(chip.title), row++, "it is made up", false});
  }

  std::string_view name() const override { return "toy"; }
  std::span<const driver::Chip> chips() const override { return chips_; }

  Result<driver::Chip> identify(const capture::DeviceInfo& info) const override {
    for (const driver::Chip& chip : chips_) {
      if (row_of(chip).model == info.fact("model")) return chip;
    }
    return Error{ErrorCode::unsupported, ""};
  }

  driver::Support supports(const driver::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return toy::supports(row_of(chip), graph, op);
  }

  Result<driver::Program> compile(const driver::Chip& chip, const ir::Graph& graph,
                                  const driver::CompileOptions& options) const override {
    if (!options.switches.empty())
      return error(ErrorCode::invalid_argument, "no tuning switch '{}'; the toy has none", options.switches[0]);
    SK_TRY_ASSIGN(const std::vector<Operation> operations, lower(row_of(chip), graph));
    return encode(row_of(chip), graph, operations, options);
  }

  Result<driver::Annotated> decode_as(const driver::Chip&, const capture::Submission& submission,
                                      driver::Detail detail) const override {
    return toy::decode(submission, detail);
  }
  driver::HardwareRows hardware_rows(const driver::Chip&) const override {
    return {.descriptors = {&bits::descriptor_of<hw::Command>(), &bits::descriptor_of<hw::Descriptor>()},
            .registers = {}};
  }

 private:
  std::vector<driver::Chip> chips_;
};

}  // namespace

const driver::Driver& driver() {
  static const auto& instance = leaked<ToyDriver>();
  return instance;
}

}  // namespace skillet::drivers::toy
