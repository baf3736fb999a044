// The on-chip buffer is one memory of banks of 1024 units: data banks, then weights up to the end of the core's share.
// It holds one slice of 32 kernels at a time. The sizes measured to work depend on the number of slices of a program.
#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

constexpr int32_t kDataBanksMin = 4, kDataBanksMax = 6;
constexpr int32_t kHalfBanks = 6;                            // of each half of two
constexpr int64_t kKiB = 1024, kCubeMax = int64_t{6} << 20;  // bytes of all weights of a program
constexpr int32_t kKernelsMax = 2944;
constexpr std::array kSliceKiB = {175, 156, 148, 144};  // with four data banks, by slices of the program: 1, 2, 3, more

int32_t feature_lanes(int32_t channels) {
  const int32_t atoms = ceil_div(channels, kAtom);
  return kAtom * (atoms + (atoms % 4 == 3 ? 1 : 0));
}

class Splitter {
 public:
  Splitter(const hw::ChipRow& chip, const Conv& conv, const Geometry& g)
      : conv_(conv),
        g_(g),
        bank_bytes_(chip.cbuf_bank_bytes),
        bank_units_(static_cast<int32_t>(chip.cbuf_bank_bytes / chip.cbuf_unit_bytes)) {}

  Result<Split> run() const {
    const int32_t group = conv_.depthwise ? kDepthwiseGroup : kKernelGroup;
    for (int32_t lanes = g_.out_lanes;; lanes = align_up(lanes / 2, group)) {
      if (auto parts = in_parts(lanes)) return std::move(*parts);
      if (lanes <= group) break;
    }
    return refusal();
  }

  // As the vendor's compiler divides work for the second core, or for two cores at once.
  Split halves() const {
    const bool alike = conv_.out.height % 2 == 0;
    const int32_t upper = ceil_div(conv_.out.height, 2);
    Split split;
    if (conv_.out.height == 1) {
      split.tasks.push_back(whole(CoreUse::first));
      return split;
    }
    for (const bool is_lower : {false, true}) {
      Task task = is_lower ? rows_from(upper, conv_.out.height - upper) : rows_from(0, upper);
      task.lanes = g_.out_lanes;
      task.use = alike ? (is_lower ? CoreUse::lower_half : CoreUse::upper_half)
                       : (is_lower ? CoreUse::second : CoreUse::first);
      task.one_of_two = !alike;
      task.data_banks = alike ? kHalfBanks : banks_for(task.rows, g_.out_lanes);
      split.tasks.push_back(task);
      if (!alike)
        split.tasks.push_back({.rows = 1, .out_rows = 1, .lanes = kAtom, .data_banks = kDataBanksMin, .dummy = true});
    }
    return split;
  }
  Task whole(CoreUse use) const {
    return {.rows = conv_.in.height,
            .pad_top = conv_.pad_top,
            .out_rows = conv_.out.height,
            .lanes = g_.out_lanes,
            .data_banks = banks_for(conv_.in.height, g_.out_lanes),
            .use = use};
  }
  std::string overfull(const Task& task) const {
    if (task.data_banks < kDataBanksMin || task.data_banks > kDataBanksMax)
      return fmt::format("cna.cbuf_banks.data_banks = {}: programs have {} to {}", task.data_banks, kDataBanksMin,
                         kDataBanksMax);
    if (banks_for(task.rows, task.lanes) > task.data_banks)
      return fmt::format("cna.cbuf_banks.data_banks = {}: {} rows take {}", task.data_banks, task.rows,
                         banks_for(task.rows, task.lanes));
    if (!weights_fit(task.lanes, task.data_banks)) return "cna.weight_size0: more weights than the chip keeps";
    return "";
  }
  bool fits_whole() const { return banks_for(conv_.in.height, g_.out_lanes) <= kDataBanksMax; }

 private:
  int64_t units(int64_t rows, int32_t lanes) const {
    return int64_t{row_entries(conv_.depthwise ? std::min(lanes, g_.in_lanes) : g_.in_lanes, conv_.in.width)} * rows;
  }
  int32_t banks_for(int64_t rows, int32_t lanes) const {
    return static_cast<int32_t>(std::max<int64_t>(ceil_div(units(rows, lanes), int64_t{bank_units_}), kDataBanksMin));
  }
  // Largest size of one slice.
  int64_t slice_max(int32_t data_banks, int32_t slices) const {
    const int64_t limit =
        kSliceKiB[static_cast<size_t>(std::clamp<int32_t>(slices - 1, 0, kSliceKiB.size() - 1))] * kKiB;
    return limit - int64_t{data_banks - kDataBanksMin} * bank_bytes_;
  }
  bool weights_fit(int32_t lanes, int32_t data_banks) const {
    const int32_t group = conv_.depthwise ? kDepthwiseGroup : kKernelGroup, slices = ceil_div(lanes, group);
    const int64_t per_lane = conv_.depthwise ? conv_.taps() * 2 : g_.kernel_bytes;
    constexpr int64_t kWeightsOfUnit = 8, kUnitsMax = 65535;  // depthwise: a field counts the units of all lanes
    if (conv_.depthwise && int64_t{conv_.taps()} * align_up(lanes, kAtom) / kWeightsOfUnit > kUnitsMax) return false;
    return lanes <= kKernelsMax && per_lane * lanes <= kCubeMax &&
           per_lane * std::min(lanes, group) <= slice_max(data_banks, slices);
  }

  // Tasks of `lanes` lanes each, with the number of data banks that gives the fewest.
  std::optional<Split> in_parts(int32_t lanes) const {
    std::optional<Split> best;
    for (int32_t banks = kDataBanksMin; banks <= kDataBanksMax && weights_fit(lanes, banks); ++banks) {
      Split split;
      bool fits = true;
      for (int32_t first = 0; fits && first < g_.out_lanes; first += lanes)
        fits = add_rows(first, std::min(lanes, g_.out_lanes - first), banks, split);
      if (fits && (!best || split.tasks.size() < best->tasks.size())) best = std::move(split);
    }
    return best;
  }

  bool add_rows(int32_t first, int32_t lanes, int32_t banks, Split& split) const {
    for (int32_t out_top = 0; out_top < conv_.out.height;) {
      int32_t rows = conv_.out.height - out_top;
      while (rows > 0 && banks_for(rows_from(out_top, rows).rows, lanes) > banks) --rows;
      if (rows == 0) return false;
      Task task = rows_from(out_top, rows);
      task.first_lane = first;
      task.lanes = lanes;
      task.data_banks = banks;
      split.tasks.push_back(task);
      out_top += rows;
    }
    return true;
  }

  // For all output rows all rows there are.
  Task rows_from(int32_t out_top, int32_t out_rows) const {
    Task task = rockchip::rows_from(conv_, out_top, out_rows);
    if (out_rows == conv_.out.height) task.rows = conv_.in.height;
    return task;
  }

  Error refusal() const {
    const int64_t slice = g_.kernel_bytes * kKernelGroup;
    if (!conv_.depthwise && slice > slice_max(kDataBanksMin, 1))
      return error(ErrorCode::unsupported, "32 kernels of {} weights: {} KiB, but the chip keeps {} of them",
                   g_.kernel_bytes, ceil_div(slice, kKiB), kSliceKiB[0]);
    return error(ErrorCode::unsupported,
                 "a row of {} columns and {} channels takes {} units of the on-chip buffer; with a filter of {} rows "
                 "at most {} fit",
                 conv_.in.width, conv_.in.channels, g_.row_entries, conv_.extent_y(), kDataBanksMax * bank_units_);
  }

  const Conv& conv_;
  const Geometry& g_;
  const uint32_t bank_bytes_;
  const int32_t bank_units_;
};

}  // namespace

std::string overfull(const hw::ChipRow& chip, const Conv& conv, const Geometry& g, const Task& task) {
  return Splitter(chip, conv, g).overfull(task);
}

int32_t row_entries(int32_t channels, int32_t width) { return ceil_div(width * feature_lanes(channels), 64); }

Geometry geometry(const Conv& conv, const Tuning& tuning) {
  const auto lanes = [&](int32_t channels) { return tuning.whole_groups ? align_up(channels, kGroup) : channels; };
  Geometry g{.in_lanes = lanes(conv.in.channels), .out_lanes = lanes(conv.out.channels)};
  g.kernels = conv.depthwise ? 1 : g.out_lanes;
  g.row_width = conv.in.width;
  g.line_stride = 4 * conv.in.width;
  g.surface_stride = static_cast<int32_t>(in_pitch(conv));
  g.row_entries = row_entries(g.in_lanes, conv.in.width);
  g.out_surface = conv.out_pitch != 0 ? conv.out_pitch : in_fours(conv.out.pixels());
  g.kernel_bytes = int64_t{conv.taps()} * align_up(g.in_lanes, kAtom);
  return g;
}

Result<Split> split(const hw::ChipRow& chip, const Conv& conv, const Geometry& g, const Tuning& tuning) {
  const Splitter splitter(chip, conv, g);
  if (tuning.two_halves && splitter.fits_whole()) return splitter.halves();
  SK_TRY_ASSIGN(Split parts, splitter.run());
  if (tuning.second_core) {
    for (Task& task : parts.tasks) task.use = CoreUse::second;
  }
  return parts;
}

}  // namespace skillet::npus::rockchip::rk3576
