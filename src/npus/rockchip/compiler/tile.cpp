#include "npus/rockchip/compiler/tile.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/packing.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int32_t kRowsMax = 2047;
constexpr int64_t kPixelsMax = (int64_t{1} << 22) - 1;
constexpr int64_t kEntriesMax = (1 << 14) - 1;
constexpr int32_t kStreamedDataBanks = 7;  // when weights do not stay
constexpr int32_t kSpareOfBank = 16;       // a bank is nearly full when less than 1/kSpareOfBank of it is free

int32_t recorded_out_lanes(const Conv& conv) {
  int32_t lanes = align_up(std::max(conv.out.channels, kKernelGroup), kKernelGroup);
  if (!conv.depthwise) return lanes;
  if (conv.out.channels <= kKernelGroup) lanes *= 2;
  return align_up(lanes, kDepthwiseGroup);
}

// Recorded depthwise jobs whose last group has 16 or 32 lanes program only these, and store as many weights.
bool reads_part_of_group(const Conv& conv, const Tuning& tuning) {
  const int32_t rest = conv.in.channels % kDepthwiseGroup;
  return !tuning.whole_groups || (tuning.read_lanes && (rest == kAtom || rest == 2 * kAtom));
}

int32_t row_entries(const Conv& conv, const Geometry& g, const Tuning& tuning) {
  const int32_t atoms = g.in_lanes / kAtom, width = conv.in.width;
  if (g.packed || (!tuning.packed_rows && conv.in.channels == 1)) return g.row_width * conv.in.height;
  if (tuning.counted_banks) return entries_of(atoms, width);
  if (!tuning.true_width && width == 40 && conv.in.channels == 40) return 40;
  return ceil_div(g.row_width * 2 * ceil_div(conv.in.channels, kAtom), 8);
}

}  // namespace

int32_t entries_of(int32_t atoms, int32_t width) {
  return atoms / 4 * width + (atoms % 4 == 3 ? width : ceil_div(atoms % 4 * width, 4));
}

int64_t in_pitch(const Conv& conv) {
  if (conv.repeated) return 1;
  return conv.in_pitch != 0 ? conv.in_pitch : conv.in.pixels();
}

int64_t surface_pitch(const Plane& plane, const Tuning& tuning) {
  return tuning.packing != nullptr ? tuning.packing->surface_pitch(plane.pixels()) : plane.pixels();
}

int32_t read_lanes(const Geometry& g, int32_t first_lane, int32_t lanes) {
  return std::min(lanes, g.in_lanes - first_lane);
}

Geometry geometry(const Conv& conv, const Tuning& tuning) {
  if (tuning.packing != nullptr) return tuning.packing->geometry(conv, tuning);
  Geometry g;
  g.in_lanes =
      align_up(conv.in.channels, conv.depthwise && !reads_part_of_group(conv, tuning) ? kDepthwiseGroup : kAtom);
  g.out_lanes = recorded_out_lanes(conv);
  g.kernels = conv.depthwise ? 1 : tuning.whole_groups ? g.out_lanes : align_up(conv.out.channels, 2);
  g.packed = conv.packed && (tuning.packed_rows || conv.out.channels > 1 || conv.in_addition);
  g.row_width = conv.in.width;
  g.line_stride = 4 * conv.in.width;
  g.surface_stride = static_cast<int32_t>(in_pitch(conv) - 4 * int64_t{conv.in.width});
  if (!tuning.true_width && conv.in.width == 8 && conv.in_addition) g.row_width = 16;
  if (g.packed) {
    g.row_width = g.line_stride = tuning.packed_rows ? align_up(conv.in.width, kAtom) : std::max(conv.in.width, kAtom);
    g.surface_stride = g.line_stride * (conv.in.height - 1);
  }
  if (conv.repeated) g.line_stride = g.surface_stride = 0;
  g.row_entries = row_entries(conv, g, tuning);
  g.out_surface = conv.out_pitch != 0 ? conv.out_pitch : conv.out.pixels();
  g.kernel_bytes = int64_t{conv.taps()} * g.in_lanes;
  return g;
}

namespace {

uint64_t surface_bytes(int64_t pitch, const Plane& plane, int32_t gap, int32_t lanes) {
  const int64_t pixels = int64_t{plane.height - 1} * (plane.width + gap) + plane.width;
  return static_cast<uint64_t>(((lanes / kAtom - 1) * pitch + pixels) * kAtom);
}

}  // namespace

uint64_t input_bytes(const Conv& conv, const Geometry& g) {
  if (g.packed) return static_cast<uint64_t>(int64_t{g.line_stride} * conv.in.height * conv.in.channels);
  return surface_bytes(in_pitch(conv), conv.repeated ? Plane{} : conv.in, 0, g.in_lanes);
}
uint64_t output_bytes(const Conv& conv, const Geometry& g) {
  return surface_bytes(g.out_surface, conv.out, conv.gap, g.out_lanes);
}

namespace {

class Splitter {
 public:
  Splitter(const hw::ChipRow& chip, const Conv& conv, const Geometry& g)
      : conv_(conv),
        g_(g),
        banks_(chip.cbuf_banks),
        bank_bytes_(chip.cbuf_bank_bytes),
        bank_units_(static_cast<int32_t>(chip.cbuf_bank_bytes / chip.cbuf_unit_bytes)) {}

  Result<Split> recorded() const {
    const int32_t atoms = ceil_div(conv_.in.channels, kAtom), last = atoms % 8;
    const int32_t entries =
        atoms / 8 * conv_.in.width + (last == 3 ? conv_.in.width : ceil_div(last * conv_.in.width, 8));
    const int32_t bank_entries = bank_units_ / 2;
    const int64_t kernels = conv_.depthwise ? 1 : conv_.out.channels;
    const int64_t bytes = int64_t{conv_.taps()} * conv_.in.channels * kernels;
    const auto weight_banks = static_cast<int32_t>(ceil_div(ceil_div(bytes, 128), bank_entries)) + 1;
    const bool stays = weight_banks + 1 < banks_;
    const int32_t data_banks = stays ? banks_ - weight_banks : kStreamedDataBanks;
    const int32_t needed = static_cast<int32_t>(ceil_div(int64_t{entries} * conv_.in.height, bank_entries));
    if (needed <= data_banks) return Split{{whole(needed)}, true};
    return recorded_rows(bank_entries * data_banks / entries, data_banks, stays);
  }

  // Channels are divided until at least one output row of each part fits.
  Result<Split> counted() const {
    const int32_t group = conv_.depthwise ? kDepthwiseGroup : kKernelGroup;
    // Readers of an addition's operand take more than two small surfaces as further apart than they are (4.5).
    const bool small_addition = conv_.addition && g_.out_surface < kSurfaceMin;
    if (conv_.division != 0 && !small_addition) {
      if (auto parts = as_chosen(group)) return std::move(*parts);
    }
    if (!small_addition && !may_stay_whole()) {
      auto streamed = in_parts(g_.out_lanes, false);
      if (streamed && streamed->tasks.size() == 1 && holds_group(streamed->tasks[0])) return std::move(*streamed);
    }
    for (int32_t lanes = small_addition ? group : g_.out_lanes;; lanes = align_up(lanes / 2, group)) {
      if (auto parts = in_parts(lanes, may_stay(lanes))) return std::move(*parts);
      if (lanes == group) break;
    }
    return error(
        ErrorCode::unsupported,
        "a row of {} columns and {} channels takes {} units of the on-chip buffer: too few rows fit for a filter of {}",
        conv_.in.width, conv_.in.channels, g_.row_entries, conv_.extent_y());
  }

 private:
  Task whole(int32_t data_banks) const {
    return {.rows = conv_.in.height,
            .pad_top = conv_.pad_top,
            .out_rows = conv_.out.height,
            .lanes = g_.out_lanes,
            .data_banks = data_banks,
            .weight_banks = banks_ - data_banks};
  }

  struct Slice {
    int32_t top = 0, bottom = 0, pad_top = 0, pad_bottom = 0;
  };

  // Section 6.3, with its overlaps. With fewer rows than the filter has, its loop would not end.
  Result<Split> recorded_rows(int32_t rows, int32_t data_banks, bool stays) const {
    const int32_t kernel = conv_.kernel_height, stride = conv_.stride_y, height = conv_.in.height;
    if (rows < kernel) return error(ErrorCode::unsupported, "{} rows fit, but the filter has {}", rows, kernel);
    std::vector<Slice> slices = {{0, rows - 1, conv_.pad_top, 0}};
    for (int32_t s = kernel - conv_.pad_top - 1; s < height;) {
      const Slice before = slices.back();
      while (s <= before.bottom) s += stride;
      s -= stride;
      Slice slice{.top = std::min(s, before.bottom) - (kernel - 1) + stride};
      slice.bottom = slice.top + rows - 1;
      const bool last = slice.bottom >= height - 1;
      if (last) slice.bottom = height - 1, slice.pad_bottom = conv_.pad_bottom;
      if (slice.top <= before.top)
        return error(ErrorCode::unsupported, "{} rows fit, which is too few to continue", rows);
      slices.push_back(slice);
      if (last) break;
      s = slice.top + kernel - 1;
    }
    if (slices.back().top >= height || slices.back().bottom >= height + conv_.pad_bottom) slices.pop_back();
    return tasks_of(slices, data_banks, stays);
  }

  Split tasks_of(const std::vector<Slice>& slices, int32_t data_banks, bool stays) const {
    Split split{.one_job = stays};
    int32_t out_top = 0;
    for (const Slice& slice : slices) {
      Task task = whole(data_banks);
      task.weight_banks = stays ? banks_ - data_banks : banks_ - kStreamedDataBanks;
      task.top = slice.top;
      task.rows = std::min(slice.bottom, conv_.in.height - 1) - slice.top + 1;
      task.pad_top = slice.pad_top;
      task.out_top = out_top;
      task.out_rows = (task.rows + slice.pad_top + slice.pad_bottom - conv_.kernel_height) / conv_.stride_y + 1;
      task.reuse_weights = stays && !split.tasks.empty();
      out_top += task.out_rows;
      split.tasks.push_back(task);
    }
    return split;
  }

  // On-chip units of input rows.
  int64_t units(int64_t rows, int32_t lanes) const {
    if (g_.packed) return ceil_div(int64_t{g_.row_width} * rows, int64_t{4});
    const bool part = conv_.depthwise && lanes < g_.in_lanes;
    return (part ? entries_of(lanes / kAtom, conv_.in.width) : g_.row_entries) * rows;
  }
  // Adds a bank if the last one would be nearly full: the fetch may write past its end (10.1).
  int32_t banks_for(int64_t rows, int32_t lanes) const {
    const int64_t spare = bank_units_ / kSpareOfBank;
    return static_cast<int32_t>(ceil_div(units(rows, lanes) + spare, int64_t{bank_units_}));
  }

  int32_t weight_banks(int32_t lanes) const {
    const int64_t bytes = conv_.depthwise ? int64_t{conv_.taps()} * lanes : g_.kernel_bytes * lanes;
    return static_cast<int32_t>(ceil_div(bytes, int64_t{bank_bytes_})) + 1;
  }
  bool may_stay(int32_t lanes) const { return weight_banks(lanes) + 1 < banks_; }

  std::optional<Split> as_chosen(int32_t group) const {
    const int32_t parts = std::abs(conv_.division), groups = g_.out_lanes / group;
    if (parts > groups) return std::nullopt;
    const int32_t lanes = ceil_div(groups, parts) * group;
    const bool stays = conv_.division > 0;
    if (stays && !may_stay(lanes)) return std::nullopt;
    return in_parts(lanes, stays);
  }

  // Whether one task holds all features and weights.
  bool may_stay_whole() const {
    return may_stay(g_.out_lanes) && banks_for(conv_.in.height, g_.out_lanes) <= banks_ - weight_banks(g_.out_lanes);
  }

  bool holds_group(const Task& task) const {
    return g_.kernel_bytes * kKernelGroup <= int64_t{task.weight_banks} * bank_bytes_;
  }

  // Tasks of `lanes` channels each; nothing if no output row fits.
  std::optional<Split> in_parts(int32_t lanes, bool stays) const {
    if (!stays && g_.kernel_bytes > int64_t{bank_bytes_}) return std::nullopt;
    const int32_t usable = (stays ? banks_ - weight_banks(lanes) : kStreamedDataBanks);
    Split split;
    for (int32_t first = 0; first < g_.out_lanes; first += lanes) {
      const int32_t count = std::min(lanes, g_.out_lanes - first);
      if (!add_rows(first, count, usable, stays, split)) return std::nullopt;
    }
    return split;
  }

  bool add_rows(int32_t first, int32_t lanes, int32_t usable, bool stays, Split& split) const {
    const size_t start = split.tasks.size();
    int32_t banks = 0;
    for (int32_t out_top = 0; out_top < conv_.out.height;) {
      Task task = rows_from(conv_, out_top, 1);
      if (!fits(task, lanes, usable)) return false;
      // Binary search: more rows need more banks.
      int32_t low = 1, high = conv_.out.height - out_top;
      while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (fits(rows_from(conv_, out_top, middle), lanes, usable))
          low = middle;
        else
          high = middle - 1;
      }
      task = rows_from(conv_, out_top, low);
      task.first_lane = first;
      task.lanes = lanes;
      task.reuse_weights = stays && out_top > 0;
      banks = std::max(banks, banks_for(task.rows, lanes));
      split.tasks.push_back(task);
      out_top += low;
    }
    for (size_t i = start; i < split.tasks.size(); ++i) {
      split.tasks[i].data_banks = banks;
      split.tasks[i].weight_banks = banks_ - banks;
    }
    return true;
  }

  bool fits(const Task& task, int32_t lanes, int32_t usable) const {
    const int64_t packed_entries = g_.packed ? int64_t{g_.row_width} * task.rows : 0;
    return task.rows <= kRowsMax && packed_entries <= kEntriesMax &&
           int64_t{task.out_rows} * conv_.out.width <= kPixelsMax && banks_for(task.rows, lanes) <= usable;
  }

  const Conv& conv_;
  const Geometry& g_;
  const int32_t banks_;
  const uint32_t bank_bytes_;
  const int32_t bank_units_;
};

}  // namespace

Task rows_from(const Conv& conv, int32_t out_top, int32_t out_rows) {
  const int32_t first = out_top * conv.stride_y - conv.pad_top;
  const int32_t last = first + (out_rows - 1) * conv.stride_y + conv.extent_y() - 1;
  Task task{.top = std::clamp(first, 0, conv.in.height - 1), .out_top = out_top, .out_rows = out_rows};
  task.pad_top = std::max(0, task.top - first);
  task.rows = std::clamp(last, task.top, conv.in.height - 1) - task.top + 1;
  return task;
}

Result<Split> split(const hw::ChipRow& chip, const Conv& conv, const Geometry& g, const Tuning& tuning) {
  if (tuning.packing != nullptr) return tuning.packing->split(chip, conv, g, tuning);
  const Splitter splitter(chip, conv, g);
  return tuning.counted_banks ? splitter.counted() : splitter.recorded();
}

namespace {

constexpr double kCyclesPerMs = 200'000, kBytesPerCycle = 4, kCyclesToStart = 2000;

}  // namespace

double predicted_ms(int64_t atoms) {
  constexpr double kOperands = 3;
  return (static_cast<double>(atoms) * kAtom * kOperands / kBytesPerCycle + kCyclesToStart) / kCyclesPerMs;
}

double predicted_ms(const Conv& conv, const Geometry& g, const Task& task) {
  const double pixels = double(task.out_rows) * conv.out.width;
  const double groups = conv.depthwise ? 2.0 * task.lanes / kDepthwiseGroup
                                       : double(task.lanes) / kKernelGroup * ceil_div(g.in_lanes, kLaneGroup);
  const double in_lanes = conv.depthwise ? task.lanes : g.in_lanes;
  const double weights = double(g.kernel_bytes) * (conv.depthwise ? 1 : task.lanes);
  const double bytes = double(task.rows) * conv.in.width * in_lanes + pixels * task.lanes + weights;
  return (std::max(groups * conv.taps() * pixels, bytes / kBytesPerCycle) + kCyclesToStart) / kCyclesPerMs;
}

}  // namespace skillet::npus::rockchip
