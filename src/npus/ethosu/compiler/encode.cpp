#include "npus/ethosu/compiler/encode.h"

#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "npus/ethosu/compiler/job_stream.h"
#include "npus/ethosu/compiler/tile.h"
#include "npus/ethosu/compiler/weights.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint32_t kFirstTable = 16, kTableBytes = 256, kBothCores = 3;
constexpr size_t kConstantAlign = 16, kRecordBytes = 10;

uint32_t low16(int32_t value) { return static_cast<uint16_t>(value); }

// Registers keep what they hold: only what differs is written.
class Commands {
 public:
  template <typename T>
  void set(const T& fields) {
    const auto words = bits::pack(fields).value();
    const std::array<uint32_t, 2> both = {words[0], words[1]};
    const auto [at, is_new] = held_.try_emplace(T::kAddress, both);
    if (!is_new && at->second == both) return;
    at->second = both;
    start(fields);
  }
  template <typename T>
  void start(const T& fields) {
    add_command(words_, fields);
  }
  std::vector<uint32_t> take() { return std::move(words_); }

 private:
  std::vector<uint32_t> words_;
  std::map<uint32_t, std::array<uint32_t, 2>> held_;
};

class Encoder {
 public:
  Encoder(const hw::ChipRow& chip, const ir::Graph& graph, const std::function<uint64_t(ir::TensorId)>& offset_of)
      : chip_(chip), graph_(graph), offset_of_(offset_of) {}

  Stream run(std::span<const Operation> operations) {
    if (chip_.product == hw::ConfigProduct::u65) commands_.set(hw::ParallelMode{.dual_core = chip_.cores > 1});
    for (const Operation& one : operations) add(one);
    return {commands_.take(), std::move(constants_)};
  }

 private:
  uint64_t add_constant(std::span<const uint8_t> bytes) {
    constants_.resize(align_up(constants_.size(), kConstantAlign));
    const uint64_t at = constants_.size();
    constants_.insert(constants_.end(), bytes.begin(), bytes.end());
    return at;
  }
  uint64_t constant_at(const Bytes& bytes) {
    const auto [at, is_new] = known_.try_emplace(bytes, 0);
    if (is_new) at->second = add_constant(bytes);
    return at->second;
  }

  struct Place {
    uint32_t region = kArenaRegion;
    uint64_t offset = 0;
  };
  Place place_of(const Map& map, uint8_t fill) {
    if (map.tensor == ir::kNoTensor) {
      const uint64_t end = map.offset + (map.height - 1) * map.stride_y + (map.width - 1) * map.stride_x + map.depth;
      return {kConstantsRegion, constant_at(Bytes(end, fill)) + map.offset};
    }
    const ir::Tensor& tensor = graph_.tensor(map.tensor);
    if (!tensor.is_constant()) return {kArenaRegion, offset_of_(map.tensor) + map.offset};
    const auto [at, is_new] = tensors_.try_emplace(map.tensor, 0);
    if (is_new) at->second = add_constant(tensor.data);
    return {kConstantsRegion, at->second + map.offset};
  }

  void add(const Operation& one) {
    const Tile tile = tile_of(chip_, one).value();
    const bool is_elementwise_op = is_elementwise(one.unit);
    if (one.table) load_table(*one.table);
    if (is_elementwise_op) set_operand_scales(one);
    set_input(one);
    if (!is_elementwise_op) set_pads(one.window);
    set_output(one);
    if (!is_elementwise_op) set_kernel(one);
    if (has_weights(one.unit)) set_weights(one, tile);
    set_block(one, tile);
    if (!has_weights(one.unit)) commands_.set(hw::OfmScale{.shift = one.scale.shift, .scale = one.scale.scale});
    if (is_elementwise_op) set_second_input(one, tile);
    commands_.set(hw::Blockdep{.value = 0});
    start(one.unit);
  }

  void set_operand_scales(const Operation& one) {
    if (one.unit != Unit::add && one.unit != Unit::sub) return;
    commands_.set(hw::OpaScale{.shift = one.operand.shift, .scale = one.operand.scale});
    commands_.set(hw::OpbScale{});
  }

  void set_input(const Operation& one) {
    const Map& map = one.input;
    const Place place = place_of(map, one.fill);
    commands_.set(hw::IfmRegion{.value = place.region});
    commands_.set(hw::IfmBase0{.value = place.offset});
    commands_.set(hw::IfmBase1{}), commands_.set(hw::IfmBase2{}), commands_.set(hw::IfmBase3{});
    commands_.set(hw::IfmHeight0M1{.value = map.height}), commands_.set(hw::IfmHeight1M1{.value = map.height});
    commands_.set(hw::IfmWidth0M1{.value = map.width});
    commands_.set(hw::IfmDepthM1{.value = map.depth});
    commands_.set(hw::IfmStrideC{.value = 1});
    commands_.set(hw::IfmStrideY{.value = map.stride_y}), commands_.set(hw::IfmStrideX{.value = map.stride_x});
    commands_.set(hw::IfmZeroPoint{.value = low16(map.zero_point)});
    commands_.set(hw::IfmPrecision{.is_signed = map.is_signed, .scale_mode = one.operand_scale});
    commands_.set(hw::IfmUpscale{});
  }

  void set_pads(const Window& window) {
    commands_.set(hw::IfmPadTop{.value = window.top}), commands_.set(hw::IfmPadLeft{.value = window.left});
    commands_.set(hw::IfmPadBottom{.value = window.bottom}), commands_.set(hw::IfmPadRight{.value = window.right});
  }

  void set_output(const Operation& one) {
    const Map& map = one.output;
    const Place place = place_of(map, 0);
    commands_.set(hw::OfmRegion{.value = place.region});
    commands_.set(hw::OfmBase0{.value = place.offset});
    commands_.set(hw::OfmBase1{}), commands_.set(hw::OfmBase2{}), commands_.set(hw::OfmBase3{});
    commands_.set(hw::OfmHeightM1{.value = map.height}), commands_.set(hw::OfmWidthM1{.value = map.width});
    commands_.set(hw::OfmHeight0M1{.value = map.height}), commands_.set(hw::OfmHeight1M1{.value = map.height});
    commands_.set(hw::OfmWidth0M1{.value = map.width});
    commands_.set(hw::OfmDepthM1{.value = map.depth});
    commands_.set(hw::OfmStrideC{.value = 1});
    commands_.set(hw::OfmStrideY{.value = map.stride_y}), commands_.set(hw::OfmStrideX{.value = map.stride_x});
    commands_.set(hw::OfmZeroPoint{.value = low16(map.zero_point)});
    commands_.set(
        hw::OfmPrecision{.is_signed = map.is_signed,
                         .scale_mode = has_weights(one.unit) ? hw::OutputScale::per_channel : hw::OutputScale::global,
                         .round_mode = one.rounding});
  }

  void set_kernel(const Operation& one) {
    const Window& window = one.window;
    commands_.set(hw::KernelHeightM1{.value = window.dilated_h()});
    commands_.set(hw::KernelWidthM1{.value = window.dilated_w()});
    commands_.set(
        hw::KernelStride{.x = window.stride_w,
                         .y = window.stride_h,
                         .part_kernel_first = one.unit == Unit::conv && traversal_of(one) == Traversal::part_kernel,
                         .dilation_x = window.dilation_w,
                         .dilation_y = window.dilation_h});
  }

  // Each core has every so many channels.
  void set_weights(const Operation& one, const Tile& tile) {
    commands_.set(hw::WeightRegion{.value = kConstantsRegion});
    commands_.set(hw::ScaleRegion{.value = kConstantsRegion});
    for (uint32_t core = 0; core < chip_.cores; ++core) {
      const uint32_t channels = (one.output.depth + chip_.cores - 1 - core) / chip_.cores;
      const Bytes scales = records_of(one, core), weights = channels == 0 ? Bytes() : stream_of(one, tile, core);
      const uint64_t scale_at = add_constant(scales), weight_at = add_constant(weights);
      if (core == 0) {
        commands_.set(hw::WeightBase{.value = weight_at});
        commands_.set(hw::WeightLength{.value = static_cast<uint32_t>(weights.size())});
        commands_.set(hw::ScaleBase{.value = scale_at});
        commands_.set(hw::ScaleLength{.value = static_cast<uint32_t>(scales.size())});
      } else {
        commands_.set(hw::Weight1Base{.value = weight_at});
        commands_.set(hw::Weight1Length{.value = static_cast<uint32_t>(weights.size())});
        commands_.set(hw::Scale1Base{.value = scale_at});
        commands_.set(hw::Scale1Length{.value = static_cast<uint32_t>(scales.size())});
      }
    }
  }

  Bytes records_of(const Operation& one, uint32_t core) const {
    const auto bias = one.bias == ir::kNoTensor ? std::vector<int32_t>() : graph_.tensor(one.bias).values<int32_t>();
    Bytes out;
    for (size_t channel = core; channel < one.output.depth; channel += chip_.cores) {
      const auto sum = static_cast<uint64_t>(bias.empty() ? 0 : int64_t{bias[channel]});
      for (uint32_t i = 0; i < 5; ++i) out.push_back(static_cast<uint8_t>(sum >> 8 * i));
      const Scale scale = one.channel_scales[channel];
      for (uint32_t i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(scale.scale >> 8 * i));
      out.push_back(static_cast<uint8_t>(scale.shift));
    }
    out.resize((out.size() + kConstantAlign - 1) / kConstantAlign * kConstantAlign);
    return out;
  }

  Bytes stream_of(const Operation& one, const Tile& tile, uint32_t core) const {
    const ir::Tensor& filter = graph_.tensor(one.filter);
    const uint32_t cores = chip_.cores, outputs = one.output.depth;
    const uint32_t inputs = one.unit == Unit::depthwise ? 1 : one.input.depth;
    const Window& window = one.window;
    const WeightOrder order{.traversal = traversal_of(one),
                            .outputs = (outputs + cores - 1 - core) / cores,
                            .inputs = inputs,
                            .kernel_h = window.kernel_h,
                            .kernel_w = window.kernel_w,
                            .dilation_h = window.dilation_h,
                            .dilation_w = window.dilation_w,
                            .block_depth = std::max(1U, (tile.depth + cores - 1 - core) / cores),
                            .ublock_depth = chip_.ublock_depth};
    const auto zero_point = static_cast<int16_t>(filter.quant.zero_point());
    const bool is_signed = filter.dtype == ir::DType::int8;
    const auto weight = [&](uint32_t o, uint32_t y, uint32_t x, uint32_t i) {
      const size_t channel = size_t{o} * cores + core, tap = size_t{y} * window.kernel_w + x;
      const size_t taps = size_t{window.kernel_h} * window.kernel_w;
      const uint8_t byte =
          filter.data[one.filter_by_tap ? tap * outputs + channel : (channel * taps + tap) * inputs + i];
      return static_cast<int16_t>((is_signed ? static_cast<int8_t>(byte) : int16_t{byte}) - zero_point);
    };
    return encode_weights(in_order(order, weight));
  }

  void set_block(const Operation& one, const Tile& tile) {
    commands_.set(hw::Activation{.function = one.table ? kFirstTable : 0});
    commands_.set(hw::ActivationMin{.value = low16(one.least)}),
        commands_.set(hw::ActivationMax{.value = low16(one.most)});
    commands_.set(hw::OfmBlkHeightM1{.value = tile.height}), commands_.set(hw::OfmBlkWidthM1{.value = tile.width});
    commands_.set(hw::OfmBlkDepthM1{.value = tile.depth});
    commands_.set(hw::IfmIbEnd{.value = tile.input_end}), commands_.set(hw::AbStart{.value = tile.sums_start});
    commands_.set(hw::AccFormat{});
  }

  void set_second_input(const Operation& one, const Tile& tile) {
    const Map &map = one.input2, &out = one.output;
    const Place place = place_of(map, 0);
    commands_.set(hw::Ifm2IbStart{.value = tile.input2_start});
    commands_.set(hw::Ifm2Region{.value = place.region});
    commands_.set(hw::Ifm2Base0{.value = place.offset});
    commands_.set(hw::Ifm2Base1{}), commands_.set(hw::Ifm2Base2{}), commands_.set(hw::Ifm2Base3{});
    commands_.set(hw::Ifm2Height0M1{.value = map.height}), commands_.set(hw::Ifm2Height1M1{.value = map.height});
    commands_.set(hw::Ifm2Width0M1{.value = map.width});
    commands_.set(hw::Ifm2StrideC{.value = 1});
    commands_.set(hw::Ifm2StrideY{.value = map.stride_y}), commands_.set(hw::Ifm2StrideX{.value = map.stride_x});
    commands_.set(hw::Ifm2ZeroPoint{.value = low16(map.zero_point)});
    commands_.set(hw::Ifm2Precision{.is_signed = map.is_signed});
    commands_.set(hw::Ifm2Broadcast{.height = map.height < out.height,
                                    .width = map.width < out.width,
                                    .depth = map.depth < out.depth,
                                    .swapped = one.is_swapped});
  }

  // Operations before it may read another one there; the next one waits for this one.
  void load_table(const Table& table) {
    commands_.start(hw::OpKernelWait{});
    commands_.set(hw::Dma0SrcRegion{.region = kConstantsRegion});
    commands_.set(hw::Dma0Src{.value = constant_at(Bytes(table.begin(), table.end()))});
    commands_.set(hw::Dma0DstRegion{.region = kBothCores, .internal = true});
    commands_.set(hw::Dma0Dst{.value = chip_.table_address});
    commands_.set(hw::Dma0Len{.value = kTableBytes});
    commands_.start(hw::OpDmaStart{});
    commands_.start(hw::OpDmaWait{});
  }

  void start(Unit unit) {
    using Mode = hw::ElementwiseMode;
    switch (unit) {
      case Unit::conv: return commands_.start(hw::OpConv{});
      case Unit::depthwise: return commands_.start(hw::OpDepthwise{});
      case Unit::max_pool: return commands_.start(hw::OpPool{.mode = hw::PoolMode::max});
      case Unit::average_pool: return commands_.start(hw::OpPool{.mode = hw::PoolMode::average});
      case Unit::mul: return commands_.start(hw::OpElementwise{.mode = Mode::mul});
      case Unit::add: return commands_.start(hw::OpElementwise{.mode = Mode::add});
      case Unit::sub: return commands_.start(hw::OpElementwise{.mode = Mode::sub});
      case Unit::min: return commands_.start(hw::OpElementwise{.mode = Mode::min});
      case Unit::max: return commands_.start(hw::OpElementwise{.mode = Mode::max});
    }
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const std::function<uint64_t(ir::TensorId)>& offset_of_;
  Commands commands_;
  Bytes constants_;
  std::map<Bytes, uint64_t> known_;           // tables, and what pads
  std::map<ir::TensorId, uint64_t> tensors_;  // constant ones
};

}  // namespace

Stream encode(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
              const std::function<uint64_t(ir::TensorId)>& offset_of) {
  return Encoder(chip, graph, offset_of).run(operations);
}

}  // namespace skillet::npus::ethosu
