// The toy's five calls. cmake/vendors.cmake makes the registry that calls driver().
#include "npu/driver.h"

#include "base/leaked.h"
#include "npus/toy/compiler/decode.h"
#include "npus/toy/compiler/encode.h"

namespace skillet::npus::toy {
namespace {

const hw::ChipRow& row_of(const npu::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

class ToyDriver final : public npu::Driver {
 public:
  ToyDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips())
      chips_.push_back({std::string(chip.name), "toy", std::string(chip.title), row++, "it is made up", false});
  }

  std::string_view name() const override { return "toy"; }
  std::span<const npu::Chip> chips() const override { return chips_; }

  Result<npu::Chip> identify(const capture::DeviceInfo& info) const override {
    for (const npu::Chip& chip : chips_) {
      if (row_of(chip).model == info.fact("model")) return chip;
    }
    return Error{ErrorCode::unsupported, ""};
  }

  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return toy::supports(row_of(chip), graph, op);
  }

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    if (!options.switches.empty())
      return error(ErrorCode::invalid_argument, "no tuning switch '{}'; the toy has none", options.switches[0]);
    SK_TRY_ASSIGN(const std::vector<Operation> operations, lower(row_of(chip), graph));
    return encode(row_of(chip), graph, operations, options);
  }

  Result<npu::Annotated> decode_as(const npu::Chip&, const capture::Submission& submission,
                                   npu::Detail detail) const override {
    return toy::decode(submission, detail);
  }
  npu::HardwareRows hardware_rows(const npu::Chip&) const override {
    return {.descriptors = {&bits::descriptor_of<hw::Command>(), &bits::descriptor_of<hw::Descriptor>()},
            .registers = {}};
  }

 private:
  std::vector<npu::Chip> chips_;
};

}  // namespace

const npu::Driver& driver() {
  const auto& instance = leaked([] { return ToyDriver(); });
  return instance;
}

}  // namespace skillet::npus::toy
