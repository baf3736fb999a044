#include <algorithm>

#include "base/log.h"
#include "drivers/vivante/decode.h"
#include "drivers/vivante/encode.h"
#include "drivers/vivante/lower.h"
#include "drivers/vivante/support.h"
#include "drivers/vivante/tile.h"
#include "drivers/vivante/vivante_driver.h"
#include "drivers/vivante/weights.h"

namespace skillet::drivers::vivante {
namespace {

const hw::ChipRow& row_of(const driver::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

// Ids as the kernel reports them; the low 4 bits of the revision do not matter (specification section 1.3).
bool matches(const hw::ChipIds& ids, const capture::DeviceInfo& info) {
  return ids.model == info.model && (ids.revision & 0xFFF0) == (info.revision & 0xFFF0) &&
         ids.product == info.product_id && ids.eco == info.eco_id && ids.customer == info.customer_id;
}

class VivanteDriver final : public driver::Driver {
 public:
  VivanteDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips())
      chips_.push_back({std::string(chip.name), "vivante", std::string(chip.title), row++});
  }

  std::string_view name() const override { return "vivante"; }
  std::span<const driver::Chip> chips() const override { return chips_; }

  Result<driver::Chip> identify(const capture::DeviceInfo& info) const override {
    for (const driver::Chip& chip : chips_) {
      if (matches(row_of(chip).ids, info)) return chip;
    }
    return error(ErrorCode::unsupported,
                 "{}: no known NPU has model 0x{:x}, revision 0x{:x}, product 0x{:x}, eco 0x{:x}, customer 0x{:x}",
                 info.node, info.model, info.revision, info.product_id, info.eco_id, info.customer_id);
  }

  driver::Support supports(const driver::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return vivante::supports(row_of(chip), graph, op);
  }

  Result<driver::Program> compile(const driver::Chip& chip, const ir::Graph& graph,
                                  const driver::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, tuning_of(options));
    SK_TRY_ASSIGN(Lowered lowered, lower(row_of(chip), graph, tuning));
    auto program = encode(row_of(chip), graph, std::move(lowered));
    if (program.ok() && log::debug_flag("stream")) log::write(log::Level::info, driver::print(*program));
    return program;
  }

  Result<std::vector<driver::Compression>> compression(const driver::Chip& chip, const ir::Graph& graph,
                                                       const driver::CompileOptions& options) const override {
    const hw::ChipRow& row = row_of(chip);
    SK_TRY_ASSIGN(const Tuning tuning, tuning_of(options));
    SK_TRY_ASSIGN(const Lowered lowered, lower(row, graph, tuning));
    std::vector<driver::Compression> rows;
    for (const Operation& op : lowered.operations) {
      const auto* const nn = std::get_if<NnOperation>(&op.job);
      if (nn == nullptr) continue;
      const KernelSplit split = split_kernels(nn->kernels.output_channels, row.nn_cores, tile(row, *nn).superblocks);
      const CoefficientSizes sizes = coefficient_sizes(row, *nn, split);
      const auto u = [](int64_t bytes) { return static_cast<uint64_t>(bytes); };
      rows.push_back(
          {op.op, op.kind, u(sizes.raw), u(sizes.recorded), u(sizes.smallest), u(sizes.format), u(sizes.entropy)});
    }
    return rows;
  }

  Result<driver::Annotated> decode(const driver::Chip& chip, const capture::Submission& submission) const override {
    return vivante::decode(row_of(chip), submission);
  }

 private:
  std::vector<driver::Chip> chips_;
};

}  // namespace

const driver::Driver& driver() {
  static const VivanteDriver instance;
  return instance;
}

}  // namespace skillet::drivers::vivante
