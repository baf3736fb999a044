#include "npus/ethosu/compiler/encode.h"

#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "npus/ethosu/compiler/job_stream.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint32_t kFirstTable = 16, kBothCores = 3;

uint32_t low16(int32_t value) { return static_cast<uint16_t>(value); }

// Registers keep their values: only changes are written.
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
  // Starts a unit for the operation.
  template <typename T>
  void start_unit(const T& fields, size_t operation) {
    starts_.push_back({static_cast<uint32_t>(words_.size()), operation});
    start(fields);
  }
  std::vector<uint32_t> take() { return std::move(words_); }
  std::vector<Start> take_starts() { return std::move(starts_); }

 private:
  std::vector<uint32_t> words_;
  std::vector<Start> starts_;
  std::map<uint32_t, std::array<uint32_t, 2>> held_;
};

class Encoder {
 public:
  Encoder(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Coded> coded, const Placement& placement)
      : chip_(chip), graph_(graph), coded_(coded), placement_(placement) {}

  Stream run(std::span<const Operation> operations) {
    if (chip_.product == hw::ConfigProduct::u65) commands_.set(hw::ParallelMode{.dual_core = chip_.cores > 1});
    for (size_t i = 0; i < operations.size(); ++i) {
      const auto& other = operations[i].weights_of;
      constants_of_.push_back(other ? constants_of_[*other] : add_constant(coded_[i].bytes));
    }
    for (size_t i = 0; i < operations.size(); ++i) add(i, operations);
    return {commands_.take(), commands_.take_starts(), std::move(constants_)};
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

  Place place_of(const Map& map, uint8_t fill) {
    if (map.tensor == ir::kNoTensor) {
      const uint64_t end = map.offset + (map.height - 1) * map.stride_y + (map.width - 1) * map.stride_x + map.depth;
      return {kConstantsRegion, constant_at(Bytes(end, fill)) + map.offset};
    }
    if (static_cast<size_t>(map.tensor) >= graph_.tensors.size() || !graph_.tensor(map.tensor).is_constant()) {
      Place place = placement_.tensors[static_cast<size_t>(map.tensor)];
      place.offset += map.offset;
      return place;
    }
    const auto [at, is_new] = tensors_.try_emplace(map.tensor, 0);
    if (is_new) at->second = add_constant(graph_.tensor(map.tensor).data);
    return {kConstantsRegion, at->second + map.offset};
  }

  static Bytes bytes_of(int32_t value) {
    Bytes out(sizeof value);
    store_le(out.data(), value);
    return out;
  }

  struct Strides {
    uint64_t y = 1, x = 1, c = 1;
    hw::Format format = hw::Format::nhwc;
  };
  static Strides strides_of(const Map& map, const Place& place) {
    if (!place.is_bricks) return {map.stride_y, map.stride_x, map.elem_bytes(), hw::Format::nhwc};
    const uint32_t channels = map.all_channels == 0 ? map.depth : map.all_channels;
    return {uint64_t{map.width} * align_up(channels, kBrick), kBrick, uint64_t{map.width} * kBrick,
            hw::Format::nhcwb16};
  }

  // Rows of a stripe in a ring of rows: the first part at `first`, `height` rows high, the rest from `below` on.
  struct Tiles {
    uint64_t first = 0, below = 0;
    uint32_t height = 1;
  };
  static Tiles tiles_of(const Map& map, const Place& place, const Strides& strides) {
    const uint32_t row = place.rows == 0 ? map.first_row : map.first_row % place.rows;
    const uint64_t at = place.offset + (place.is_bricks ? map.first_channel / kBrick * strides.c
                                                        : map.first_channel * map.elem_bytes());
    Tiles out{.first = at + row * strides.y, .below = 0, .height = map.height};
    if (place.rows != 0 && row + map.height > place.rows) out.below = at, out.height = place.rows - row;
    return out;
  }

  void add(size_t index, std::span<const Operation> operations) {
    const Operation& one = operations[index];
    const Tile& tile = coded_[index].tile;
    const bool is_elementwise_op = is_elementwise(one.unit);
    if (one.table) load_table(*one.table, index);
    if (is_elementwise_op) set_operand_scales(one);
    set_input(one);
    if (!is_elementwise_op) set_pads(one.window);
    set_output(one);
    if (!is_elementwise_op) set_kernel(one);
    if (has_weights(one.unit)) set_weights(index);
    set_block(one, tile);
    if (!has_weights(one.unit)) commands_.set(hw::OfmScale{.shift = one.scale.shift, .scale = one.scale.scale});
    if (is_elementwise_op && one.unit != Unit::clz) set_second_input(one, tile);
    commands_.set(hw::Blockdep{.value = 0});
    const auto is_copied = [&](size_t i) {
      return i < operations.size() && placement_.weights[i] && !operations[i].weights_of;
    };
    if (index == 0 && is_copied(0)) start_copy(0);
    if (is_copied(index + 1)) start_copy(index + 1);
    if (is_copied(index)) commands_.start(hw::OpDmaWait{.outstanding = is_copied(index + 1) ? 1U : 0U});
    start(one.unit, index);
  }

  void set_operand_scales(const Operation& one) {
    if (one.unit != Unit::add && one.unit != Unit::sub) return;
    commands_.set(hw::OpaScale{.shift = one.operand.shift, .scale = one.operand.scale});
    const bool is_plain = one.operand_scale == hw::OperandScale::both_16;
    commands_.set(hw::OpbScale{.scale = is_plain ? 1U : 0U});
  }

  void set_input(const Operation& one) {
    const Map& map = one.input;
    const Place place = place_of(map, one.fill);
    commands_.set(hw::IfmRegion{.value = place.region});
    const Strides strides = strides_of(map, place);
    const Tiles tiles = tiles_of(map, place, strides);
    commands_.set(hw::IfmBase0{.value = tiles.first});
    commands_.set(hw::IfmBase1{}), commands_.set(hw::IfmBase2{.value = tiles.below}), commands_.set(hw::IfmBase3{});
    commands_.set(hw::IfmHeight0M1{.value = tiles.height}), commands_.set(hw::IfmHeight1M1{.value = tiles.height});
    commands_.set(hw::IfmWidth0M1{.value = map.width});
    commands_.set(hw::IfmDepthM1{.value = map.depth});
    commands_.set(hw::IfmStrideC{.value = strides.c});
    commands_.set(hw::IfmStrideY{.value = strides.y}), commands_.set(hw::IfmStrideX{.value = strides.x});
    commands_.set(hw::IfmZeroPoint{.value = low16(map.zero_point)});
    commands_.set(hw::IfmPrecision{.is_signed = map.is_signed,
                                   .precision = map.precision,
                                   .format = strides.format,
                                   .scale_mode = one.operand_scale});
    commands_.set(hw::IfmUpscale{.mode = one.window.upscale});
  }

  void set_pads(const Window& window) {
    commands_.set(hw::IfmPadTop{.value = window.top}), commands_.set(hw::IfmPadLeft{.value = window.left});
    commands_.set(hw::IfmPadBottom{.value = window.bottom}), commands_.set(hw::IfmPadRight{.value = window.right});
  }

  void set_output(const Operation& one) {
    const Map& map = one.output;
    const Place place = place_of(map, 0);
    commands_.set(hw::OfmRegion{.value = place.region});
    const Strides strides = strides_of(map, place);
    const Tiles tiles = tiles_of(map, place, strides);
    commands_.set(hw::OfmBase0{.value = tiles.first});
    commands_.set(hw::OfmBase1{}), commands_.set(hw::OfmBase2{.value = tiles.below}), commands_.set(hw::OfmBase3{});
    commands_.set(hw::OfmHeightM1{.value = map.height}), commands_.set(hw::OfmWidthM1{.value = map.width});
    commands_.set(hw::OfmHeight0M1{.value = tiles.height}), commands_.set(hw::OfmHeight1M1{.value = tiles.height});
    commands_.set(hw::OfmWidth0M1{.value = map.width});
    commands_.set(hw::OfmDepthM1{.value = map.depth});
    commands_.set(hw::OfmStrideC{.value = strides.c});
    commands_.set(hw::OfmStrideY{.value = strides.y}), commands_.set(hw::OfmStrideX{.value = strides.x});
    commands_.set(hw::OfmZeroPoint{.value = low16(map.zero_point)});
    commands_.set(
        hw::OfmPrecision{.is_signed = map.is_signed,
                         .precision = map.precision,
                         .format = strides.format,
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

  // Reads weights from the place they are copied to, or from the constants.
  void set_weights(size_t index) {
    const Coded& coded = coded_[index];
    const auto& copied = placement_.weights[index];
    const Place from = copied ? *copied : Place{kConstantsRegion, constants_of_[index]};
    commands_.set(hw::WeightRegion{.value = from.region});
    commands_.set(hw::ScaleRegion{.value = from.region});
    for (size_t core = 0; core < coded.cores.size(); ++core) {
      const CodedRange &weights = coded.cores[core].weights, &scales = coded.cores[core].scales;
      const uint64_t weight_at = from.offset + weights.offset, scale_at = from.offset + scales.offset;
      const auto weight_bytes = static_cast<uint32_t>(weights.size_bytes);
      const auto scale_bytes = static_cast<uint32_t>(scales.size_bytes);
      if (core == 0) {
        commands_.set(hw::WeightBase{.value = weight_at}), commands_.set(hw::WeightLength{.value = weight_bytes});
        commands_.set(hw::ScaleBase{.value = scale_at}), commands_.set(hw::ScaleLength{.value = scale_bytes});
      } else {
        commands_.set(hw::Weight1Base{.value = weight_at}), commands_.set(hw::Weight1Length{.value = weight_bytes});
        commands_.set(hw::Scale1Base{.value = scale_at}), commands_.set(hw::Scale1Length{.value = scale_bytes});
      }
    }
  }

  // Starts the copy of an operation's weights. It first waits until at most one operation runs, so that none reads the
  // memory that the weights go to.
  void start_copy(size_t index) {
    const Place& to = *placement_.weights[index];
    commands_.start(hw::OpKernelWait{.outstanding = 1});
    commands_.set(hw::Dma0SrcRegion{.region = kConstantsRegion});
    commands_.set(hw::Dma0Src{.value = constants_of_[index]});
    commands_.set(hw::Dma0DstRegion{.region = to.region});
    commands_.set(hw::Dma0Dst{.value = to.offset});
    commands_.set(hw::Dma0Len{.value = coded_[index].bytes.size()});
    commands_.start_unit(hw::OpDmaStart{}, index);
  }

  void set_block(const Operation& one, const Tile& tile) {
    const bool is_wide = one.table && one.output.precision == hw::Precision::bits_32;
    commands_.set(hw::Activation{.function = one.table ? kFirstTable : one.function,
                                 .clip_range = is_wide ? hw::ClipRange::int8 : hw::ClipRange::of_output});
    commands_.set(hw::ActivationMin{.value = low16(one.least)}),
        commands_.set(hw::ActivationMax{.value = low16(one.most)});
    commands_.set(hw::OfmBlkHeightM1{.value = tile.height}), commands_.set(hw::OfmBlkWidthM1{.value = tile.width});
    commands_.set(hw::OfmBlkDepthM1{.value = tile.depth});
    commands_.set(hw::IfmIbEnd{.value = tile.input_end}), commands_.set(hw::AbStart{.value = tile.sums_start});
    commands_.set(hw::AccFormat{.format = one.has_wide_sums() ? hw::Accumulator::int40 : hw::Accumulator::int32});
  }

  void set_second_input(const Operation& one, const Tile& tile) {
    const Map &map = one.input2, &out = one.output;
    const Place place = one.constant ? Place{kConstantsRegion, constant_at(bytes_of(*one.constant))} : place_of(map, 0);
    commands_.set(hw::Ifm2IbStart{.value = tile.input2_start});
    commands_.set(hw::Ifm2Region{.value = place.region});
    commands_.set(hw::Ifm2Base0{.value = place.offset});
    commands_.set(hw::Ifm2Base1{}), commands_.set(hw::Ifm2Base2{}), commands_.set(hw::Ifm2Base3{});
    commands_.set(hw::Ifm2Height0M1{.value = map.height}), commands_.set(hw::Ifm2Height1M1{.value = map.height});
    commands_.set(hw::Ifm2Width0M1{.value = map.width});
    const Strides strides = strides_of(map, place);
    commands_.set(hw::Ifm2StrideC{.value = strides.c});
    commands_.set(hw::Ifm2StrideY{.value = strides.y}), commands_.set(hw::Ifm2StrideX{.value = strides.x});
    commands_.set(hw::Ifm2ZeroPoint{.value = low16(map.zero_point)});
    commands_.set(hw::Ifm2Precision{.is_signed = map.is_signed, .precision = map.precision, .format = strides.format});
    commands_.set(hw::Ifm2Broadcast{.height = map.height < out.height,
                                    .width = map.width < out.width,
                                    .depth = map.depth < out.depth,
                                    .swapped = one.is_swapped});
  }

  // Waits first, as earlier operations may read another table there; the next operation waits for this copy.
  void load_table(const Table& table, size_t index) {
    commands_.start(hw::OpKernelWait{});
    commands_.set(hw::Dma0SrcRegion{.region = kConstantsRegion});
    commands_.set(hw::Dma0Src{.value = constant_at(Bytes(table.begin(), table.end()))});
    commands_.set(hw::Dma0DstRegion{.region = kBothCores, .internal = true});
    commands_.set(hw::Dma0Dst{.value = chip_.table_address});
    commands_.set(hw::Dma0Len{.value = table.size()});
    commands_.start_unit(hw::OpDmaStart{}, index);
    commands_.start(hw::OpDmaWait{});
  }

  void start(Unit unit, size_t index) {
    using Mode = hw::ElementwiseMode;
    switch (unit) {
      case Unit::conv: return commands_.start_unit(hw::OpConv{}, index);
      case Unit::depthwise: return commands_.start_unit(hw::OpDepthwise{}, index);
      case Unit::max_pool: return commands_.start_unit(hw::OpPool{.mode = hw::PoolMode::max}, index);
      case Unit::average_pool: return commands_.start_unit(hw::OpPool{.mode = hw::PoolMode::average}, index);
      case Unit::reduce_sum: return commands_.start_unit(hw::OpPool{.mode = hw::PoolMode::reduce_sum}, index);
      case Unit::mul: return commands_.start_unit(hw::OpElementwise{.mode = Mode::mul}, index);
      case Unit::add: return commands_.start_unit(hw::OpElementwise{.mode = Mode::add}, index);
      case Unit::sub: return commands_.start_unit(hw::OpElementwise{.mode = Mode::sub}, index);
      case Unit::min: return commands_.start_unit(hw::OpElementwise{.mode = Mode::min}, index);
      case Unit::max: return commands_.start_unit(hw::OpElementwise{.mode = Mode::max}, index);
      case Unit::clz: return commands_.start_unit(hw::OpElementwise{.mode = Mode::clz}, index);
      case Unit::shr: return commands_.start_unit(hw::OpElementwise{.mode = Mode::shr}, index);
      case Unit::shl: return commands_.start_unit(hw::OpElementwise{.mode = Mode::shl}, index);
    }
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  std::span<const Coded> coded_;
  const Placement& placement_;
  Commands commands_;
  Bytes constants_;
  std::vector<uint64_t> constants_of_;        // by operation: place of its weights
  std::map<Bytes, uint64_t> known_;           // tables and padding values
  std::map<ir::TensorId, uint64_t> tensors_;  // constant tensors
};

}  // namespace

Stream encode(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
              std::span<const Coded> coded, const Placement& placement) {
  return Encoder(chip, graph, coded, placement).run(operations);
}

}  // namespace skillet::npus::ethosu
