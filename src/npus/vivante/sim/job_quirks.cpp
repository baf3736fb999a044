#include "npus/vivante/sim/job_quirks.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "npus/vivante/sim/nn.h"
#include "npus/vivante/sim/nn_checks.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;
using hw::NnInstruction;
using hw::TpInstruction;

constexpr uint32_t kSmallFilter = 5, kSmallPatches = 6;
constexpr uint32_t kRecordedInputs = 1280;  // of fully connected layers
constexpr int64_t kLongRow = 2048;
constexpr uint32_t kSignOfEntry = 1U << 20;

Error hang(std::string_view what) { return error(ErrorCode::timeout, "{} (a quirk of this chip)", what); }
Error page_fault(std::string_view what) { return error(ErrorCode::device, "{} (a quirk of this chip)", what); }

// ---- kinds of NN jobs, by descriptor and kernels ----

int64_t products(const Kernel& kernel) {
  return std::ssize(kernel.weights) - std::ranges::count(kernel.weights, int16_t{0});
}

// Whether the kernel's result is stored; kernels that only fill up the cores are dropped.
bool is_stored(const NnInstruction& d, const Kernel& kernel) {
  return kernel.output_offset < uint64_t{d.out_x_stride} * d.out_y_stride * d.out_z_size;
}
// Whether it is an addition or a copy of planes: these are recorded with all forms of images and filters.
bool sums_two(const NnInstruction& d, std::span<const Kernel> kernels) {
  return std::ranges::all_of(kernels,
                             [&](const Kernel& kernel) { return !is_stored(d, kernel) || products(kernel) <= 2; });
}
bool is_filter(const NnInstruction& d, std::span<const Kernel> kernels) {
  return !is_connected_window(d) && !sums_two(d, kernels);
}
bool is_large_filter(const NnInstruction& d) {
  return std::max(d.kernel_x_size, d.kernel_y_size) > kSmallFilter && !is_connected_window(d);
}
bool is_oblong_filter(const NnInstruction& d, std::span<const Kernel> kernels) {
  return d.kernel_x_size != d.kernel_y_size && is_filter(d, kernels);
}
// Both input and output: space-to-depth for a filter that is not square makes such inputs of square images.
bool is_oblong_image(const NnInstruction& d, std::span<const Kernel> kernels) {
  return d.in_x_size != d.in_y_size && d.out_x_size != d.out_y_size && is_filter(d, kernels);
}
bool is_narrow_depthwise(const NnInstruction& d, const hw::ChipRow& chip) {
  return d.depthwise && d.out_z_size > 1 && std::cmp_less(d.out_z_size, chip.nn_cores);
}
bool is_long_vector(const NnInstruction& d) {
  const bool is_1x1 = d.kernel_x_size == 1 && d.kernel_y_size == 1;
  return is_1x1 && d.in_x_size == 1 && d.in_y_size == 1 && d.kernel_z_size > kRecordedInputs;
}
bool is_long_row_sum(const NnInstruction& d, std::span<const Kernel> kernels) {
  return d.in_y_size == 1 && d.out_x_size > kLongRow && d.kernel_x_size == 1 && sums_two(d, kernels);
}
bool is_relu_of_several(const NnInstruction& d, const hw::ChipRow& chip) {
  const bool is_1x1 = d.kernel_x_size == 1 && d.kernel_y_size == 1;
  return d.relu && is_1x1 && std::cmp_greater(d.out_z_size, chip.nn_cores);
}

// Of several kernels per plane, kernel i reads only plane i / several. Copies that enlarge an image do so too.
bool has_several_for_each_plane(const NnInstruction& d, const NnJob& job, std::span<const Kernel> kernels) {
  const uint32_t planes = d.kernel_z_size;
  if (planes < 2 || d.out_z_size < 2 * planes || d.out_z_size % planes != 0 || sums_two(d, kernels)) return false;
  const int64_t several = d.out_z_size / planes;
  return std::ranges::all_of(kernels, [&](const Kernel& kernel) {
    const int64_t index = kernel.output_offset / job.out_plane_bytes;
    return !is_stored(d, kernel) || kernel.planes.empty() ||
           (kernel.planes.size() == 1 && kernel.planes[0] == index / several);
  });
}

// ---- changes of kernels ----

void deal_in_turn(const NnInstruction& d, const NnJob& job, std::span<Kernel> kernels) {
  for (Kernel& kernel : kernels) {
    const auto index = static_cast<uint32_t>(kernel.output_offset / job.out_plane_bytes);
    if (!is_stored(d, kernel)) continue;
    for (uint32_t& plane : kernel.planes) plane = index % d.kernel_z_size;
  }
}

void reverse_planes(const NnInstruction& d, const NnJob& job, std::span<Kernel> kernels) {
  const auto last = static_cast<uint32_t>(job.out_plane_bytes * (int64_t{d.out_z_size} - 1));
  for (Kernel& kernel : kernels) {
    if (kernel.output_offset <= last) kernel.output_offset = last - kernel.output_offset;
  }
}

void turn_filters(const NnJob& job, std::span<Kernel> kernels) {
  const auto width = static_cast<size_t>(job.kernel_width), height = static_cast<size_t>(job.kernel_height);
  for (Kernel& kernel : kernels) {
    const std::vector<int16_t> weights = kernel.weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      const size_t plane = i / (width * height), row = i / width % height, column = i % width;
      kernel.weights[i] = weights[plane * width * height + column * height + row];
    }
  }
}

// Starts with the last pixel, so that planes of one row or column change too.
void write_by_columns(const NnJob& job, uint8_t* plane) {
  std::vector<uint8_t> rows;
  for (int64_t y = 0; y < job.out_height; ++y)
    rows.insert(rows.end(), plane + y * job.out_row_bytes, plane + y * job.out_row_bytes + job.out_width);
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    const int64_t from = i % job.out_height * job.out_width + i / job.out_height;
    const int64_t to = std::ssize(rows) - 1 - i;
    plane[to / job.out_width * job.out_row_bytes + to % job.out_width] = rows[static_cast<size_t>(from)];
  }
}

// ---- kinds of TP jobs ----

// The whole window is one tile, and no event ends a loop. Single elements are excluded: the recorded jobs of a column
// of pixels of one channel also have such tiles.
bool is_one_tile(const TpInstruction& d) {
  return (d.in_x_size > 1 || d.in_y_size > 1) && !d.pwl_enable && !d.out_loop_1_reset && !d.out_loop_2_reset &&
         !d.out_loop_3_reset && d.in_tile_x_size == d.in_x_size && d.in_tile_y_size == d.in_y_size &&
         d.out_loop_0_inc != 0 && d.out_loop_0_count == d.in_x_size && d.out_loop_1_count == d.in_y_size;
}
// Each element goes next to those of the planes before it.
bool is_planes_to_pixels(const TpInstruction& d) {
  return is_one_tile(d) && d.out_loop_2_inc == 1 && d.out_loop_2_count == d.in_z_size &&
         d.out_loop_0_inc >= d.in_z_size && d.out_loop_1_inc == d.out_loop_0_inc * d.out_loop_0_count;
}
bool is_steps(const TpInstruction& d) { return is_one_tile(d) && !is_planes_to_pixels(d); }

}  // namespace

void WrittenRanges::note(const Accesses::Range& written) {
  const uint64_t begin = written.begin, end = begin + written.size;
  std::vector<Range> left;
  for (const Range& one : ranges_) {
    if (one.begin < begin) left.push_back({one.begin, std::min(one.end, begin), one.written_from});
    if (one.end > end) left.push_back({std::max(one.begin, end), one.end, one.written_from});
  }
  left.push_back({begin, end, begin});
  ranges_ = std::move(left);
}

uint64_t WrittenRanges::start_of(uint64_t address) const {
  const auto in = [&](const Range& one) { return one.begin <= address && address < one.end; };
  const auto found = std::ranges::find_if(ranges_, in);
  return found == ranges_.end() ? address : found->written_from;
}

void NnQuirks::start_of_stream() {
  written_.clear();
  before_.reset();
}

std::optional<StreamOrder> NnQuirks::order(const NnInstruction& d) const {
  if (has(QuirkName::wide_last_patch) && d.kernel_x_size > kSmallPatches) return StreamOrder::dense_wide;
  return std::nullopt;
}

void NnQuirks::change_address(NnInstruction& d) const {
  if (has(QuirkName::reads_from_the_start)) d.in_address.offset = written_.start_of(d.in_address.offset);
}

Result<void> NnQuirks::check_ends(const NnInstruction& d, std::span<const Kernel> kernels) const {
  using enum QuirkName;
  if (has(nn_never_ends)) return hang("the job never ends");
  if (has(large_filters_hang) && is_large_filter(d)) return hang("the large filter never ends");
  if (has(oblong_filters_hang) && is_oblong_filter(d, kernels)) return hang("the oblong filter never ends");
  if (has(long_vectors_hang) && is_long_vector(d)) return hang("the long vector never ends");
  if (has(oblong_images_fault) && is_oblong_image(d, kernels)) return page_fault("a read outside of the oblong image");
  return {};
}

void NnQuirks::keep_scale(const NnInstruction& d, NnJob& job) {
  const std::optional<NnInstruction> before = std::exchange(before_, d);
  if (!has(QuirkName::scale_stays) || !before) return;
  const auto form = [](const NnInstruction& one) {
    return std::tuple(one.in_address.offset, one.in_x_size, one.in_y_size, one.kernel_x_size, one.kernel_y_size,
                      one.kernel_z_size, one.in_x_offset, one.in_y_offset, one.pooling, one.out_x_size, one.out_y_size);
  };
  const uint64_t behind =
      before->out_address.offset + uint64_t{before->out_x_stride} * before->out_y_stride * before->out_z_size;
  if (form(*before) != form(d) || d.out_address.offset != behind) return;
  const Requant kept = make_job(*before, chip_, job.requant.rule).requant;
  job.requant.multiplier = kept.multiplier;
  job.requant.shift = kept.shift;
}

Result<void> NnQuirks::change(const NnInstruction& d, std::span<const Kernel> kernels, NnJob& job) {
  SK_TRY(check_ends(d, kernels));
  keep_scale(d, job);
  if (has(QuirkName::relu_ends_at_zero) && is_relu_of_several(d, chip_)) job.requant.relu = false;
  return {};
}

std::optional<std::vector<Kernel>> NnQuirks::change_kernels(const NnInstruction& d, const NnJob& job,
                                                            std::span<const Kernel> kernels) const {
  using enum QuirkName;
  const bool dealt = has(channels_dealt_in_turn) && has_several_for_each_plane(d, job, kernels);
  const bool reversed = has(narrow_depthwise_ascends) && is_narrow_depthwise(d, chip_);
  const bool turned = has(filters_turned) && is_oblong_filter(d, kernels);
  if (!dealt && !reversed && !turned) return std::nullopt;
  std::vector<Kernel> changed(kernels.begin(), kernels.end());
  if (dealt) deal_in_turn(d, job, changed);
  if (reversed) reverse_planes(d, job, changed);
  if (turned) turn_filters(job, changed);
  return changed;
}

void NnQuirks::change_result(const NnInstruction& d, const NnJob& job, std::span<const Kernel> kernels,
                             std::span<const KernelTask> tasks) const {
  const bool by_columns = has(QuirkName::images_by_columns) && is_oblong_image(d, kernels);
  const bool wraps = has(QuirkName::long_rows_wrap) && is_long_row_sum(d, kernels);
  for (const KernelTask& task : tasks) {
    if (by_columns) write_by_columns(job, task.out);
    for (int64_t x = kLongRow; wraps && x < job.out_width; ++x) task.out[x] = task.out[x % kLongRow];
  }
}

Result<void> check_ends(QuirkSet set, const TpInstruction& d) {
  if (set.has(QuirkName::steps_fault) && is_steps(d)) return page_fault("a write outside of the buffer");
  if (set.has(QuirkName::blocks_hang) && is_planes_to_pixels(d)) return hang("the layout change never ends");
  return {};
}

void change(QuirkSet set, const TpInstruction& d, TpJob& job) {
  const bool by_columns = (set.has(QuirkName::tiles_by_columns) && is_steps(d)) ||
                          (set.has(QuirkName::blocks_by_columns) && is_planes_to_pixels(d));
  if (by_columns) job.tile_width = job.tile_x_inc = 1;
}

void change_table(QuirkSet set, std::span<uint32_t> entries) {
  if (!set.has(QuirkName::tables_without_sign)) return;
  for (uint32_t& entry : entries) entry &= ~kSignOfEntry;
}

}  // namespace skillet::sim::vivante
