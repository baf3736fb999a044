#include <algorithm>
#include <optional>

#include "base/leaked.h"
#include "base/log.h"
#include "npus/vivante/compiler/assumptions.h"
#include "npus/vivante/compiler/byte_table.h"
#include "npus/vivante/compiler/choices.h"
#include "npus/vivante/compiler/decode.h"
#include "npus/vivante/compiler/encode.h"
#include "npus/vivante/compiler/groups.h"
#include "npus/vivante/compiler/lower.h"
#include "npus/vivante/compiler/numerics.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tile.h"
#include "npus/vivante/compiler/tuning.h"
#include "npus/vivante/compiler/vivante_driver.h"
#include "npus/vivante/compiler/weights.h"

namespace skillet::npus::vivante {
namespace {

const hw::ChipRow& row_of(const npu::Chip& chip) { return hw::chips()[static_cast<size_t>(chip.row)]; }

hw::ChipIds ids_of(const capture::DeviceInfo& info) {
  const auto id = [&](std::string_view name) { return static_cast<uint32_t>(info.fact(name)); };
  return {id("model"), id("revision"), id("product"), id("eco"), id("customer")};
}

Result<Tuning> all_of(const npu::CompileOptions& options) {
  SK_TRY_ASSIGN(Tuning tuning, tuning_of(options));
  tuning.sram_caches |= options.takes_unproven() && options.tuning == npu::Tuning::tuned;
  return tuning;
}

// In `recorded`, tables count from the zero points of tensors.
Result<void> check_recorded_tables(const ir::Graph& graph) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const int input = byte_input(graph, graph.ops[i]);
    const auto table = input < 0 ? std::nullopt : byte_table(graph, graph.ops[i]);
    if (table && table->zero_point != unsigned_zero_point(graph.tensor(graph.ops[i].input(static_cast<size_t>(input)))))
      return error(ErrorCode::unsupported, "{}: the recorded driver does not take it",
                   ir::describe_op(graph, static_cast<ir::OpId>(i)));
  }
  return {};
}

class VivanteDriver final : public npu::Driver {
 public:
  VivanteDriver() {
    int32_t row = 0;
    for (const hw::ChipRow& chip : hw::chips())
      chips_.push_back({std::string(chip.name), "vivante", std::string(chip.title), row++, std::string(chip.assumption),
                        !chip.has(hw::kIdsOnly)});
  }

  std::string_view name() const override { return "vivante"; }
  std::string_view weights_order() const override { return "patches"; }
  std::span<const npu::Chip> chips() const override { return chips_; }

  Result<npu::Chip> identify(const capture::DeviceInfo& info) const override {
    const hw::ChipRow* const row = hw::find_chip(ids_of(info));
    if (row != nullptr) return chips_[static_cast<size_t>(row - hw::chips().data())];
    return error(ErrorCode::unsupported, "{}: no known NPU has {}", info.node, capture::print(info));
  }

  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return vivante::supports(row_of(chip), graph, op);
  }

  std::span<const npu::Assumption> assumptions(const npu::Chip&) const override { return vivante::assumptions(); }

  int tolerance(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return vivante::tolerance(row_of(chip), graph, op);
  }

  // Depthwise filters are written out for all channels if the chip has no native ones; coded zeros then come in runs.
  npu::MadeConstants made_constants(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    constexpr uint64_t kZerosInCode = 6;  // of one byte each, measured
    if (graph.op(op).kind != ir::OpKind::depthwise_conv_2d) return Driver::made_constants(chip, graph, op);
    const hw::ChipRow& row = row_of(chip);
    const ConvShape s = conv_shape(row, graph, op);
    if (is_native_depthwise(row, s)) return Driver::made_constants(chip, graph, op);
    const uint64_t bytes =
        static_cast<uint64_t>(s.in.channels) * static_cast<uint64_t>(graph.tensor(graph.op(op).inputs[1]).bytes());
    return {row.has(hw::kDepthwise) ? bytes : bytes / kZerosInCode, ""};
  }

  size_t weight_scales_max(const npu::Chip&, const ir::Graph&, ir::OpId) const override { return kMaxChannelGroups; }

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, all_of(options));
    if (options.tuning == npu::Tuning::recorded) SK_TRY(check_recorded_tables(graph));
    SK_TRY_ASSIGN(Lowered lowered, lower(row_of(chip), graph, tuning, options.keep_intermediates));
    auto program = encode(row_of(chip), graph, std::move(lowered),
                          {.share_memory = tuning.shared_memory && !options.keep_intermediates,
                           .join_constants = tuning.joined_constants});
    if (program.ok() && log::debug_flag("stream")) log::write(log::Level::info, npu::print(*program));
    return program;
  }

  Result<std::vector<npu::Choice>> choices(const npu::Chip& chip, const ir::Graph& graph,
                                           const npu::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const Tuning tuning, all_of(options));
    return vivante::choices(row_of(chip), graph, tuning);
  }

  std::span<const npu::TuningSwitch> switches() const override { return tuning_switches(); }

  Result<std::vector<npu::Compression>> compression(const npu::Chip& chip, const ir::Graph& graph,
                                                    const npu::CompileOptions& options) const override {
    const hw::ChipRow& row = row_of(chip);
    SK_TRY_ASSIGN(const Tuning tuning, tuning_of(options));
    SK_TRY_ASSIGN(const Lowered lowered, lower(row, graph, tuning));
    std::vector<npu::Compression> rows;
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

  Result<npu::Annotated> decode_as(const npu::Chip& chip, const capture::Submission& submission,
                                   npu::Detail detail) const override {
    return vivante::decode(row_of(chip), submission, detail);
  }

  npu::HardwareRows hardware_rows(const npu::Chip& chip) const override {
    npu::HardwareRows out{
        .descriptors = {&hw::nn_instruction(row_of(chip)), &bits::descriptor_of<hw::TpInstruction>(),
                        &bits::descriptor_of<hw::NnConfig>(), &bits::descriptor_of<hw::VipFlushControl>()},
        .registers = {}};
    for (const hw::StateRow& row : hw::states())
      out.registers.push_back({static_cast<uint32_t>(row.state), row.name, row.doc});
    return out;
  }

 private:
  std::vector<npu::Chip> chips_;
};

}  // namespace

const npu::Driver& driver() {
  const auto& instance = leaked([] { return VivanteDriver(); });
  return instance;
}

}  // namespace skillet::npus::vivante
