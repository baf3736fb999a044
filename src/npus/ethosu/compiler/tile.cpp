#include "npus/ethosu/compiler/tile.h"

#include <algorithm>
#include <cmath>

#include "base/int_math.h"

namespace skillet::npus::ethosu {
namespace {

// Specification, section 1.2: granularity of the allocation of banks, and size of an ublock.
struct Granules {
  uint32_t macs, input, input32, sums, wide_sums, ublock_h, ublock_w;
};
constexpr Granules kGranules[] = {
    {32, 2, 4, 4, 4, 1, 1}, {64, 2, 4, 4, 8, 1, 1}, {128, 4, 8, 8, 12, 1, 2}, {256, 8, 16, 16, 20, 2, 2}};
const Granules& granules_of(const hw::ChipRow& chip) {
  const uint32_t macs = chip.macs / chip.cores;
  return *std::ranges::find(kGranules, macs, &Granules::macs);
}

constexpr uint32_t kBankBytes = 1024, kOutputBanks = 2, kTableBanks = 2, kSumBytes = 4, kWideSumBytes = 5;
constexpr uint32_t kHeightMax = 32, kWidthMax = 64, kDepthMax = 128, kDepthStep = 16, kSubkernel = 8;

class Search {
 public:
  Search(const hw::ChipRow& chip, const Operation& operation)
      : operation_(operation),
        granules_(granules_of(chip)),
        ublock_depth_(chip.ublock_depth),
        is_part_(operation.unit == Unit::conv && traversal_of(operation) == Traversal::part_kernel) {
    const uint32_t table = operation.table ? kTableBanks : 0;
    banks_ = chip.shram_kbytes - std::max(table, chip.table_kbytes);
  }

  std::optional<Tile> run() {
    const Map& out = operation_.output;
    const uint32_t height_max = align_up(std::min(out.height, kHeightMax), granules_.ublock_h);
    const uint32_t width_max = align_up(std::min(out.width, kWidthMax), granules_.ublock_w);
    for (uint32_t d = depth_min(); d <= depth_max(); d = next(d + ublock_depth_))
      for (uint32_t h = granules_.ublock_h; h <= height_max; h += granules_.ublock_h)
        for (uint32_t w = granules_.ublock_w; w <= width_max && consider(h, w, d); w += granules_.ublock_w) {
        }
    return best_;
  }
  // The smallest block needs the fewest banks.
  bool any() const {
    return depth_min() <= depth_max() && made(granules_.ublock_h, granules_.ublock_w, depth_min()).has_value();
  }

 private:
  uint32_t next(uint32_t depth) const { return depth < operation_.output.depth ? align_up(depth, kDepthStep) : depth; }
  uint32_t depth_max() const { return align_up(std::min(operation_.output.depth, kDepthMax), ublock_depth_); }
  uint32_t depth_min() const { return next(std::max(ublock_depth_, std::min(depth_max(), kDepthStep))); }
  bool is_equal_depth() const { return operation_.unit != Unit::conv && operation_.unit != Unit::reduce_sum; }

  std::optional<Tile> made(uint32_t h, uint32_t w, uint32_t d) const {
    const Window& window = operation_.window;
    Tile tile{.height = h, .width = w, .depth = d};
    const uint32_t more = window.upscale == hw::Upscale::nearest ? 1 : 0;
    const uint32_t times = window.upscale == hw::Upscale::none ? 1 : 2;
    const uint32_t rows = (h - 1) * window.stride_h + std::min(window.dilated_h(), kSubkernel) + more;
    const uint32_t columns = (w - 1) * window.stride_w + std::min(window.dilated_w(), kSubkernel) + more;
    tile.input_height = align_up(ceil_div(rows, times), granules_.ublock_h);
    tile.input_width = align_up(ceil_div(columns, times), granules_.ublock_w);
    const uint32_t most = is_part_ || operation_.is_wide() ? 16 : 32;
    tile.input_depth =
        is_equal_depth() ? d : align_up(std::min(operation_.input.depth, most), operation_.is_wide() ? 4 : 8);
    const uint32_t input_bytes =
        tile.input_height * tile.input_width * align_up(tile.input_depth * operation_.input.elem_bytes(), 8);
    const uint32_t input_banks = align_up(2 * ceil_div(input_bytes, kBankBytes),
                                          operation_.input.elem_bytes() == 4 ? granules_.input32 : granules_.input);
    if (is_elementwise(operation_.unit)) {
      tile.input2_start = kOutputBanks + input_banks;
      tile.input_end = tile.sums_start = banks_;
      if (tile.input2_start + input_banks > banks_) return std::nullopt;
      return tile;
    }
    const bool is_line = operation_.output.height == 1 && window.kernel_h == 1 && granules_.ublock_h == 2;
    const bool is_wide = operation_.has_wide_sums();
    const uint32_t sum_bytes = (is_line ? 1 : h) * w * align_up(d, 8) * (is_wide ? kWideSumBytes : kSumBytes);
    const uint32_t sum_banks =
        align_up(2 * ceil_div(sum_bytes, kBankBytes), is_wide ? granules_.wide_sums : granules_.sums);
    tile.input_end = kOutputBanks + input_banks;
    if (tile.input_end + sum_banks > banks_) return std::nullopt;
    tile.sums_start = banks_ - sum_banks;
    return tile;
  }

  // Cost of the fetched bytes per output.
  double cost_of(const Tile& tile) const {
    const Map &in = operation_.input, &out = operation_.output;
    const double elems = static_cast<double>(out.height) * out.width * out.depth;
    if (is_elementwise(operation_.unit))
      return std::max(1.0, elems / (static_cast<double>(tile.height) * tile.width * tile.depth));
    const Window& window = operation_.window;
    double weights = 0;
    if (has_weights(operation_.unit)) {
      weights = static_cast<double>(window.dilated_h()) * window.dilated_w() * in.depth *
                ceil_div(out.width, tile.width) * ceil_div(out.height, tile.height);
      if (operation_.unit != Unit::depthwise) weights *= tile.depth * (static_cast<double>(out.depth) / tile.depth);
    }
    const double repeats = ceil_div(window.dilated_h(), kSubkernel) * ceil_div(window.dilated_w(), kSubkernel);
    double inputs = static_cast<double>(tile.input_width) * tile.input_height * in.depth * repeats *
                    (static_cast<double>(out.width) / tile.width) * (static_cast<double>(out.height) / tile.height);
    if (!is_equal_depth()) inputs *= ceil_div(out.depth, tile.depth);
    return (inputs + weights) / elems;
  }

  // False if it does not fit; wider blocks do not fit either.
  bool consider(uint32_t h, uint32_t w, uint32_t d) {
    const auto tile = made(h, w, d);
    if (!tile) return false;
    const Map& in = operation_.input;
    double cost = cost_of(*tile);
    const double block = static_cast<double>(tile->input_width) * tile->input_height * tile->input_depth;
    if (static_cast<double>(in.height) * in.width * in.depth < 2 * block) cost /= 2;  // all of the input fits at once
    const double coverage =
        static_cast<double>(in.height) * in.width /
        (static_cast<double>(std::min(in.width, tile->input_width)) * std::min(in.height, tile->input_height));
    if (cost < cost_) {
      best_ = tile, cost_ = cost, coverage_ = HUGE_VAL;
    } else if (cost == cost_ && coverage <= coverage_ && h <= 4 && w <= 4) {
      best_ = tile, coverage_ = coverage;
    }
    return true;
  }

  const Operation& operation_;
  const Granules& granules_;
  uint32_t ublock_depth_, banks_ = 0;
  bool is_part_;
  std::optional<Tile> best_;
  double cost_ = HUGE_VAL, coverage_ = HUGE_VAL;
};

}  // namespace

// The order that keeps the multipliers busier: 4 taps of 8 channels at a time, or one tap of 32; half of that for 16
// bits.
Traversal traversal_of(const Operation& operation) {
  if (operation.unit == Unit::depthwise) return Traversal::depthwise;
  const uint32_t depth = operation.input.depth, taps = operation.window.kernel_h * operation.window.kernel_w;
  if (depth <= 8) return Traversal::part_kernel;
  const uint32_t taps_once = operation.is_wide() ? 2 : 4, depth_once = operation.is_wide() ? 16 : 32;
  const double by_part = static_cast<double>(depth) / align_up(depth, 8) * taps / align_up(taps, taps_once);
  return by_part >= static_cast<double>(depth) / align_up(depth, depth_once) ? Traversal::part_kernel
                                                                             : Traversal::depth_first;
}

std::optional<Tile> tile_of(const hw::ChipRow& chip, const Operation& operation) {
  return Search(chip, operation).run();
}
bool has_tile(const hw::ChipRow& chip, const Operation& operation) { return Search(chip, operation).any(); }

}  // namespace skillet::npus::ethosu
