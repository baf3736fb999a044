#include "npus/ethosu/hw/timing.h"

#include <algorithm>

#include "base/int_math.h"

namespace skillet::ethosu::timing {
namespace {

constexpr int64_t kSubkernel = 8, kBrick = 16, kRecordBytes = 10, kAxiBytes = 64, kRecordBurst = 256;

// Cycles of the output unit per element: for 32-bit functions with one operand or two, 32-bit products, other products
// and 40-bit sums, sums, largest values, the rest; then for tables and clamps. Rows are for one core.
struct OutputRates {
  int64_t macs;
  double one_operand, two_operands, wide_product, product, sum, largest, rest, table, clamp;
  int64_t ublock_h, ublock_w;
};
constexpr OutputRates kOutputRates[] = {{32, 2, 3, 3, 3, 6, 1, 2, 1, 1, 1, 1},
                                        {64, 1, 1.5, 1.5, 1.5, 3, 0.5, 1, 1, 1, 1, 1},
                                        {128, .75, 1.25, .75, .75, 1.5, .25, .5, 1, .5, 1, 2},
                                        {256, .625, 1.125, .5, .375, .75, .125, .25, 1, .25, 2, 2}};
const OutputRates& rates_of(const hw::ChipRow& chip) {
  return *std::ranges::find(kOutputRates, int64_t{chip.macs / chip.cores}, &OutputRates::macs);
}

class Pricing {
 public:
  Pricing(const hw::ChipRow& chip, const Rates& rates, const Operation& operation)
      : chip_(chip), row_(rates_of(chip)), rates_(rates), op_(operation), input_block_(input_block(chip, operation)) {
    const Size &block = op_.block, &out = op_.output.size;
    block_ = {std::min(block.height, out.height), std::min(block.width, out.width), std::min(block.depth, out.depth)};
    planes_ = ceil_div(out.height, block.height) * ceil_div(out.width, block.width);
    blocks_ = planes_ * ceil_div(out.depth, block.depth);
  }

  Cost run() const {
    Cost cost;
    const double elem_cycles = output_cycles();
    const double first = read_cycles(op_.input) + (op_.has_input2 ? read_cycles(op_.input2) : 0), last = write_cycles();
    const auto block_elems = static_cast<double>(block_.elems());
    if (op_.kind == Kind::elementwise) {
      Size elems = op_.output.size;
      if (op_.output.is_bricks) elems.depth = align_up(elems.depth, kBrick);
      const double with_commands = (first + last + elem_cycles * block_elems) / 4 / block_elems;
      cost.ao_cycles = elem_cycles * static_cast<double>(elems.elems());
      cost.cycles = std::max(elem_cycles, with_commands) * static_cast<double>(elems.elems());
    } else {
      const double mac = mac_cycles();
      double ao = std::max(1.0, elem_cycles * block_elems);
      if (has_weights(op_.kind))
        ao = std::max(
            ao, static_cast<double>(kRecordBytes * block_.depth) * rates_[op_.scale_memory].read_cycles / kRecordBurst);
      const double commands = (first + last + ao + mac) / 4;
      const double slower = std::max({mac, ao, commands}), faster = std::max(std::min(mac, ao), commands);
      const auto blocks = static_cast<double>(blocks_);
      cost.mac_cycles = mac * blocks, cost.ao_cycles = ao * blocks;
      cost.cycles = slower * blocks + faster;
    }
    add_traffic(cost);
    return cost;
  }

 private:
  double output_cycles() const {
    const bool is_wide = op_.input.elem_bytes == 4;
    double cycles = row_.rest;
    if (op_.kind == Kind::max_pool)
      cycles = row_.largest;
    else if (op_.has_wide_sums && op_.kind != Kind::elementwise)
      cycles = row_.product;
    else if (op_.kind == Kind::elementwise && is_wide)
      cycles = op_.arithmetic == Output::one_operand ? row_.one_operand : row_.two_operands;
    else if (op_.arithmetic == Output::product)
      cycles = op_.output.elem_bytes == 4 ? row_.wide_product : row_.product;
    else if (op_.arithmetic == Output::sum)
      cycles = row_.sum;
    const double function = op_.function == Function::table   ? row_.table
                            : op_.function == Function::clamp ? row_.clamp
                                                              : 0;
    return std::max(cycles, function) / chip_.cores;
  }

  // Cycles for a block.
  double mac_cycles() const {
    const bool is_dense = op_.kind == Kind::depth_first || op_.kind == Kind::part_kernel;
    const bool is_line = is_dense && row_.ublock_h == 2 && op_.output.size.height == 1 && op_.kernel_h == 1 &&
                         op_.output.size.width % 2 == 0;
    const int64_t ublock_h = is_line ? 1 : row_.ublock_h, ublock_w = is_line ? 4 : row_.ublock_w;
    const int64_t across = ceil_div(block_.width, ublock_w), down = ceil_div(block_.height, ublock_h);
    const int64_t tall = kSubkernel / op_.dilation_h, wide = kSubkernel / op_.dilation_w;
    double cycles = 0;
    for (int64_t y = 0; y < op_.kernel_h; y += tall)
      for (int64_t x = 0; x < op_.kernel_w; x += wide)
        cycles += subkernel_cycles(std::min(tall, op_.kernel_h - y) * std::min(wide, op_.kernel_w - x), across, down);
    if (sums_channels(op_.kind)) cycles *= static_cast<double>(ceil_div(op_.input.size.depth, input_block_.depth));
    return cycles / chip_.cores;
  }

  double subkernel_cycles(int64_t taps, int64_t across, int64_t down) const {
    const int64_t plane = across * down, deep = ceil_div(block_.depth, int64_t{chip_.ublock_depth});
    const int64_t weights = 32 * int64_t{chip_.ublock_depth} / 8, elem = op_.input.elem_bytes;
    const bool is_part = op_.kind == Kind::part_kernel, is_smallest = row_.macs == 32;
    const int64_t inputs = is_part ? ceil_div(input_block_.depth, int64_t{8}) : 1;
    int64_t steps = 1, cycles = 0;
    switch (op_.kind) {
      case Kind::max_pool:
      case Kind::average_pool:
        cycles = std::max(int64_t{4}, taps) * plane * deep * (elem == 2 && !is_smallest ? 2 : 1);
        break;
      case Kind::depthwise:
        steps = ceil_div(taps, int64_t{4});
        cycles = std::max(weights, 4 * plane * elem) * steps * deep;
        break;
      case Kind::part_kernel: steps = ceil_div(taps, int64_t{elem == 2 ? 2 : 4}); [[fallthrough]];
      default:
        if (!is_part) steps = taps;
        cycles = std::max(weights, 4 * plane) * steps * inputs * deep;
    }
    const bool is_wide = op_.has_wide_sums;
    const int64_t wait = is_smallest ? (is_wide ? 7 : 3) : is_wide && row_.macs <= 128 ? 3 : 2;
    int64_t delay = 0;
    if (plane == 1 && deep == 1) delay = wait * steps;
    if (plane == 1 && deep > 1) delay = wait * (steps - 1) * deep;
    if (is_smallest && is_wide && (across == 1 || down == 1) && deep > 1) delay += wait * deep;
    return static_cast<double>(cycles + delay * inputs);
  }

  double fetch_cycles(double bytes, int64_t burst, const MemoryRates& memory) const {
    const double used = std::clamp(static_cast<double>(burst), 1.0, memory.burst_bytes);
    return bytes * memory.burst_bytes / used / memory.bytes;
  }
  // Cycles to read the input of a block.
  double read_cycles(const Side& side) const {
    const Size part = {std::min(input_block_.height, side.size.height), std::min(input_block_.width, side.size.width),
                       std::min(input_block_.depth, side.size.depth)};
    int64_t burst = side.elem_bytes * part.depth;
    if (side.is_bricks)
      burst = side.elem_bytes * (side.stride_c == part.depth ? part.depth : kBrick) * part.width;
    else if (side.stride_x == burst)
      burst *= part.width;
    const MemoryRates& memory = rates_[side.memory];
    return memory.read_cycles + fetch_cycles(static_cast<double>(part.elems() * side.elem_bytes), burst, memory);
  }
  double write_cycles() const {
    const Side& side = op_.output;
    int64_t burst = side.elem_bytes * block_.depth;
    if (side.is_bricks)
      burst = side.elem_bytes * kBrick * block_.width * chip_.cores;
    else if (block_.depth <= kBrick && side.stride_x == burst)
      burst *= block_.width;
    else
      burst = std::min({kAxiBytes, kBrick * side.elem_bytes * int64_t{chip_.cores}, burst});
    const MemoryRates& memory = rates_[side.memory];
    return memory.write_cycles + fetch_cycles(static_cast<double>(block_.elems() * side.elem_bytes), burst, memory);
  }

  void add_traffic(Cost& cost) const {
    const Side& in = op_.input;
    if (op_.kind == Kind::elementwise) {
      cost.read_bytes[in.memory] += static_cast<double>(in.size.elems() * in.elem_bytes);
      if (op_.has_input2)
        cost.read_bytes[op_.input2.memory] += static_cast<double>(op_.input2.size.elems() * op_.input2.elem_bytes);
    } else {
      const int64_t repeats = ceil_div((op_.kernel_h - 1) * op_.dilation_h + 1, kSubkernel) *
                              ceil_div((op_.kernel_w - 1) * op_.dilation_w + 1, kSubkernel);
      const int64_t plane = std::min(input_block_.height, in.size.height) * std::min(input_block_.width, in.size.width);
      const int64_t blocks = sums_channels(op_.kind) ? blocks_ : planes_;
      cost.read_bytes[in.memory] += static_cast<double>(plane * in.size.depth * in.elem_bytes) *
                                    static_cast<double>(repeats) * static_cast<double>(blocks);
    }
    cost.read_bytes[op_.weight_memory] += static_cast<double>(op_.weight_bytes) * static_cast<double>(planes_);
    cost.read_bytes[op_.scale_memory] += static_cast<double>(op_.scale_bytes);
    cost.written_bytes[op_.output.memory] += static_cast<double>(op_.output.size.elems() * op_.output.elem_bytes);
  }

  const hw::ChipRow& chip_;
  const OutputRates& row_;
  const Rates& rates_;
  const Operation& op_;
  Size input_block_, block_;  // block_: clipped to the output
  int64_t planes_ = 1, blocks_ = 1;
};

}  // namespace

Size input_block(const hw::ChipRow& chip, const Operation& op) {
  const OutputRates& row = rates_of(chip);
  const auto need = [&](int64_t outputs, int64_t stride, int64_t kernel, int64_t dilation, int64_t ublock) {
    const int64_t taps = std::min((kernel - 1) * dilation + 1, kSubkernel);
    return align_up(ceil_div((outputs - 1) * stride + taps + (op.is_nearest ? 1 : 0), op.upscale), ublock);
  };
  Size out = {need(op.block.height, op.stride_h, op.kernel_h, op.dilation_h, row.ublock_h),
              need(op.block.width, op.stride_w, op.kernel_w, op.dilation_w, row.ublock_w), op.block.depth};
  if (!sums_channels(op.kind)) return out;
  const int64_t depth = op.input.size.depth;
  out.depth = op.input.elem_bytes == 2
                  ? align_up(std::min(depth, int64_t{16}), int64_t{4})
                  : align_up(std::min(depth, int64_t{op.kind == Kind::part_kernel ? 16 : 32}), int64_t{8});
  return out;
}

Cost cost_of(const hw::ChipRow& chip, const Rates& rates, const Operation& operation) {
  return Pricing(chip, rates, operation).run();
}

}  // namespace skillet::ethosu::timing
