#include "npus/vivante/sim/nn.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/int_math.h"
#include "base/log.h"
#include "npus/vivante/sim/field_check.h"
#include "npus/vivante/sim/nn_checks.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

constexpr uint64_t kCacheLimitBytes = uint64_t{256} << 20;
constexpr uint32_t kTwoPatches = 6;        // columns; the recorded driver also divides wider filters into two patches
constexpr uint32_t kRowWiseWidthMax = 64;  // the recorded driver's limit of its 5x5 row-wise order

bool covers_image(const hw::NnInstruction& d) {
  return d.out_x_size == 1 && d.out_y_size == 1 && d.kernel_x_size == d.in_x_size && d.kernel_y_size == d.in_y_size;
}

bool is_five_by_five(const hw::NnInstruction& d) {
  return d.kernel_x_size == 5 && d.kernel_y_size == 5 && d.kernel_z_size == 1;
}

StreamOrder stream_order(WeightOrder order) {
  switch (order) {
    case WeightOrder::patch:
    case WeightOrder::well_formed: return StreamOrder::dense;
    case WeightOrder::row_wise: return StreamOrder::dense_rows;
    case WeightOrder::linear: return StreamOrder::kernel_major;
  }
  return StreamOrder::dense;
}

const CoefficientFormat& coefficient_format(const hw::ChipRow& chip, const Options& options) {
  const bool assumed_v8 =
      chip.has(hw::kCoefficientEnhancement) && options.enhanced_coefficients != CoefficientAssumption::v7;
  const bool v8 = chip.generation >= kCoefficientFormatV8.generation || assumed_v8;
  return v8 ? kCoefficientFormatV8 : kCoefficientFormatV7;
}

std::vector<StreamOrder> pointwise_orders(bool relu, PointwiseOrder order) {
  const StreamOrder by_bit = relu ? StreamOrder::dense : StreamOrder::six_planes;
  switch (order) {
    case PointwiseOrder::by_relu_bit: return {by_bit};
    case PointwiseOrder::six: return {StreamOrder::six_planes};
    case PointwiseOrder::dense: return {StreamOrder::dense};
    case PointwiseOrder::well_formed: break;
  }
  return {by_bit, relu ? StreamOrder::six_planes : StreamOrder::dense};
}

// Whether there is one kernel for each plane from the first on, including those that only fill up the cores.
bool has_a_kernel_per_plane(const Coefficients& coefficients, int64_t plane_bytes) {
  std::vector<bool> found(coefficients.kernels.size());
  for (const Kernel& kernel : coefficients.kernels) {
    const auto plane = static_cast<size_t>(kernel.output_offset / plane_bytes);
    if (kernel.output_offset % plane_bytes != 0 || plane >= found.size() || found[plane]) return false;
    found[plane] = true;
  }
  return true;
}

// Decodes in the first order that is well-formed; in the first order if none is.
Result<Coefficients> decode_by_any(const CoefficientFormat& format, std::span<const uint8_t> buffer,
                                   const hw::ChipRow& chip, CoefficientShape shape,
                                   std::span<const StreamOrder> orders) {
  for (const StreamOrder order : orders) {
    shape.order = order;
    auto decoded = format.decode(buffer, chip, shape);
    if (orders.size() == 1) return decoded;
    if (decoded.ok() && has_a_kernel_per_plane(*decoded, shape.plane_bytes)) return decoded;
  }
  shape.order = orders[0];
  return format.decode(buffer, chip, shape);
}

// The orders of recorded V7 jobs, and the orders that are right, likeliest first. No field contains the order.
std::vector<StreamOrder> seen_orders(const hw::NnInstruction& d) {
  std::vector<StreamOrder> orders;
  if (is_connected_window(d)) orders.push_back(StreamOrder::kernel_major);
  if (is_five_by_five(d) && d.in_x_size <= kRowWiseWidthMax) orders.push_back(StreamOrder::dense_rows);
  if (d.kernel_x_size > kTwoPatches) orders.push_back(StreamOrder::dense_wide);
  if (d.kernel_x_size == 1 && d.kernel_y_size == 1)
    std::ranges::copy(pointwise_orders(d.relu, PointwiseOrder::well_formed), std::back_inserter(orders));
  else
    orders.push_back(StreamOrder::dense);
  if (covers_image(d) && !is_connected_window(d)) orders.push_back(StreamOrder::kernel_major);
  return orders;
}

std::string_view order_name(StreamOrder order) {
  switch (order) {
    case StreamOrder::dense: return "dense";
    case StreamOrder::dense_rows: return "row after row";
    case StreamOrder::dense_wide: return "dense, wide patches";
    case StreamOrder::six_planes: return "six channels";
    case StreamOrder::kernel_major: return "kernel after kernel";
  }
  return "";
}

uint64_t decoded_bytes(const Coefficients& coefficients) {
  uint64_t total = 0;
  for (const Kernel& kernel : coefficients.kernels)
    total += sizeof kernel + kernel.planes.size() * 4 + kernel.weights.size() * 4;  // and the packed form
  return total;
}

// The kernels that produce a plane of the output, with its place. The chip stores no plane past out_z_size, so kernels
// that only fill up the cores are dropped here.
Result<std::vector<KernelTask>> place_kernels(const NnJob& job, const Coefficients& coefficients, uint64_t out_address,
                                              const Memory& memory) {
  std::vector<KernelTask> tasks;
  std::vector<bool> written(static_cast<size_t>(job.out_planes));
  for (const Kernel& kernel : coefficients.kernels) {
    const int64_t plane = kernel.output_offset / job.out_plane_bytes;
    if (plane >= job.out_planes) continue;
    if (written[static_cast<size_t>(plane)])
      return error(ErrorCode::device, "two kernels write output plane {} (offset {})", plane, kernel.output_offset);
    written[static_cast<size_t>(plane)] = true;
    const auto size = static_cast<uint64_t>(job.out_plane_extent());
    const uint64_t address = out_address + kernel.output_offset;
    const auto out = memory.at(address, size, "nn_instruction.out_address");
    if (!out.ok()) return memory.at(address, size, fmt::format("nn_instruction.out_address, plane {}", plane)).error();
    if (tasks.empty()) SK_TRY(memory.check_written(address, "nn_instruction.out_address"));
    tasks.push_back({&kernel, out->data()});
  }
  const auto missing = std::find(written.begin(), written.end(), false);
  if (missing != written.end())
    return error(ErrorCode::device, "no kernel writes output plane {} of {}", missing - written.begin(),
                 job.out_planes);
  return tasks;
}

// The cores read and write tiles in an unknown order.
Result<void> check_overlap(const NnJob& job, std::span<const uint8_t> in, std::span<const KernelTask> tasks) {
  for (const KernelTask& task : tasks) {
    if (task.out < in.data() + in.size() && in.data() < task.out + job.out_plane_extent())
      return error(ErrorCode::device, "nn_instruction.out_address: an output plane overlaps the input image");
  }
  return {};
}

Result<void> check_work(const NnJob& job, std::span<const KernelTask> tasks, uint64_t limit) {
  const auto pixels = static_cast<uint64_t>(job.out_width * job.out_height);
  uint64_t macs = 0;
  for (const KernelTask& task : tasks) macs += pixels * (task.kernel->weights.size() + 1);
  if (macs > limit)
    return error(ErrorCode::device, "{} multiplications in one job: the simulator's limit is {}", macs, limit);
  return {};
}

}  // namespace

NnUnit::NnUnit(const hw::ChipRow& chip, const Options& options)
    : chip_(chip), options_(options), format_(coefficient_format(chip, options)), quirks_(chip, options.quirks) {}

bool is_connected_window(const hw::NnInstruction& d) {
  const auto widest_divisor = [](int64_t number) {
    int64_t divisor = std::min<int64_t>(number, 15);
    while (divisor > 1 && number % divisor != 0) --divisor;
    return divisor;
  };
  const int64_t inputs = int64_t{d.kernel_x_size} * d.kernel_y_size * d.kernel_z_size;
  const int64_t width = widest_divisor(inputs);
  return covers_image(d) && d.kernel_x_size == width && d.kernel_y_size == widest_divisor(inputs / width);
}

Result<hw::NnInstruction> NnUnit::instruction(uint64_t address, const Memory& memory) const {
  SK_TRY_ASSIGN(const auto words, descriptor_words(memory, address, hw::kNnInstructionWords, "nn_instruction"));
  const auto typed = hw::unpack_nn_instruction(chip_, words);
  SK_TRY(check_fields(hw::nn_instruction(chip_), typed.raw, chip_.flags));
  return typed.fields;
}

// The possible orders of the weights, likeliest first.
std::vector<StreamOrder> NnUnit::stream_orders(const Instruction& d, const CoefficientShape& shape) const {
  if (&format_ != &kCoefficientFormatV7) return {StreamOrder::dense};  // one order for all filters
  if (const auto other = quirks_.order(d)) return {*other};
  const bool five = is_five_by_five(d) && d.in_x_size <= kRowWiseWidthMax;
  const WeightOrder connected = covers_image(d) ? options_.order_fully_connected : WeightOrder::patch;
  if (connected == WeightOrder::linear || connected == WeightOrder::row_wise) return {stream_order(connected)};
  std::vector<StreamOrder> orders = shape.taps() == 1 ? pointwise_orders(d.relu, options_.order_1x1)
                                    : five            ? std::vector{stream_order(options_.order_5x5_ic1)}
                                                      : std::vector{StreamOrder::dense};
  if (connected == WeightOrder::well_formed) orders.push_back(StreamOrder::kernel_major);
  return orders;
}

Result<NnUnit::Stored> NnUnit::stored(const Instruction& d, const Memory& memory) const {
  const char* const what = "nn_instruction.kernel_address";
  Stored out{.shape = coefficient_shape(d), .bytes = {}};
  out.shape.raw_weights = chip_.generation < kCoefficientFormatV8.generation &&
                          options_.enhanced_coefficients == CoefficientAssumption::v8_raw;
  const auto header_size = static_cast<uint64_t>(format_.header_bytes(chip_));
  SK_TRY_ASSIGN(const std::span<uint8_t> header, memory.at(d.kernel_address.offset, header_size, what));
  SK_TRY_ASSIGN(const int64_t size, format_.buffer_bytes(header, chip_, out.shape));
  SK_TRY_ASSIGN(out.bytes, memory.at(d.kernel_address.offset, static_cast<uint64_t>(size), what));
  return out;
}

Result<std::vector<Coefficients>> NnUnit::readings(const Instruction& d, const Memory& memory) const {
  SK_TRY_ASSIGN(const Stored from, stored(d, memory));
  std::vector<Coefficients> out;
  if (&format_ != &kCoefficientFormatV7) {
    SK_TRY_INTO(out.emplace_back(), format_.decode(from.bytes, chip_, from.shape));
    return out;
  }
  std::optional<Error> problem;
  for (const StreamOrder order : seen_orders(d)) {
    CoefficientShape shape = from.shape;
    shape.order = order;
    auto one = format_.decode(from.bytes, chip_, shape);
    if (!one.ok()) {
      if (!problem) problem = one.error();
    } else if (has_a_kernel_per_plane(*one, shape.plane_bytes) &&
               std::ranges::none_of(out, [&](const Coefficients& other) { return other.kernels == one->kernels; })) {
      out.push_back(std::move(one).value());
    }
  }
  if (!out.empty()) return out;
  if (problem) return *problem;
  return error(ErrorCode::device, "in no order of the weights does each output plane have one kernel");
}

void NnUnit::report_assumptions(const Instruction& d, const Stored& from, const Coefficients& taken) const {
  using enum StreamOrder;
  struct Assumption {
    std::string_view name;
    bool concerns;
    StreamOrder others[2];
  };
  for (const Assumption& one : {
           Assumption{"order_1x1", from.shape.taps() == 1, {six_planes, dense}},
           Assumption{"order_5x5_ic1", is_five_by_five(d) && d.in_x_size <= kRowWiseWidthMax, {dense_rows, dense}},
           Assumption{"order_fully_connected", covers_image(d), {kernel_major, dense}},
       }) {
    const auto is_other = [&](StreamOrder order) {
      CoefficientShape shape = from.shape;
      shape.order = order;
      const auto other = format_.decode(from.bytes, chip_, shape);
      return !other.ok() || other->kernels != taken.kernels;
    };
    if (one.concerns && std::ranges::any_of(one.others, is_other)) options_.on_assumption(one.name);
  }
}

Result<std::shared_ptr<NnUnit::Known>> NnUnit::coefficients(const Instruction& d, const Memory& memory) {
  SK_TRY_ASSIGN(const Stored from, stored(d, memory));
  const CoefficientShape& shape = from.shape;
  const std::span<const uint8_t> buffer = from.bytes;
  const std::vector<StreamOrder> orders = stream_orders(d, shape);
  const int64_t shape_words[] = {shape.kernel_width,        shape.kernel_height,       shape.planes,
                                 shape.kernels_per_core,    int64_t{shape.zero_point}, static_cast<int64_t>(orders[0]),
                                 int64_t{shape.depthwise},  shape.output_planes,       shape.plane_bytes,
                                 int64_t{shape.raw_weights}};
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(buffer.data(), buffer.size(), XXH3_64bits(shape_words, sizeof shape_words));
  const CacheKey key{hash.high64, hash.low64};
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  SK_TRY_ASSIGN(Coefficients decoded, decode_by_any(format_, buffer, chip_, shape, orders));
  if (options_.on_assumption && &format_ == &kCoefficientFormatV7) report_assumptions(d, from, decoded);
  auto shared = std::make_shared<Known>();
  shared->decoded = std::move(decoded);
  if (cached_bytes_ > kCacheLimitBytes) {
    cache_.clear();
    cached_bytes_ = 0;
  }
  cached_bytes_ += decoded_bytes(shared->decoded);
  cache_.emplace(key, shared);
  return shared;
}

Result<std::shared_ptr<NnUnit::Known>> NnUnit::with_quirks(const Instruction& d, NnJob& job,
                                                           std::shared_ptr<Known> known) {
  if (!quirks_.any()) return known;
  SK_TRY(quirks_.change(d, known->decoded.kernels, job));
  auto kernels = quirks_.change_kernels(d, job, known->decoded.kernels);
  if (!kernels) return known;
  auto changed = std::make_shared<Known>();
  changed->decoded = known->decoded;
  changed->decoded.kernels = std::move(*kernels);
  return changed;
}

Result<Accesses> NnUnit::run(uint64_t descriptor_address, const Memory& memory) {
  SK_TRY_ASSIGN(Instruction d, instruction(descriptor_address, memory));
  quirks_.change_address(d);
  SK_TRY(check_geometry(d, chip_));
  NnJob job = make_job(d, chip_, options_.tie_rule);
  SK_TRY_ASSIGN(std::shared_ptr<Known> known, coefficients(d, memory));
  SK_TRY_ASSIGN(known, with_quirks(d, job, std::move(known)));
  const Coefficients& kernels = known->decoded;
  if (log::debug_flag("sim"))
    log::write(log::Level::info, fmt::format("  weights read as: {}", order_name(kernels.order)));
  SK_TRY(check_sram(d, chip_, kernels));
  SK_TRY(check_superblocks(d, kernels, options_.order.leniency));
  SK_TRY(check_pattern(d, options_.order.leniency));
  SK_TRY_ASSIGN(const std::span<uint8_t> in,
                memory.at(d.in_address.offset, static_cast<uint64_t>(job.in_extent()), "nn_instruction.in_address"));
  SK_TRY_ASSIGN(const std::vector<KernelTask> tasks, place_kernels(job, kernels, d.out_address.offset, memory));
  SK_TRY(check_overlap(job, in, tasks));
  SK_TRY(check_work(job, tasks, options_.max_macs_per_job));
  const bool fits =
      std::all_of(tasks.begin(), tasks.end(), [](const KernelTask& task) { return sums_fit(*task.kernel); });
  if (options_.reference_only || !fits)
    SK_TRY(convolve_plain(job, tasks, in));
  else
    convolve_fast(job, tasks, in, known->packed);
  quirks_.change_result(d, job, kernels.kernels, tasks);
  const auto written = static_cast<uint64_t>(job.out_plane_bytes * job.out_planes);
  return Accesses{.read = {d.in_address.offset, in.size(), "nn_instruction.in_address"},
                  .written = {d.out_address.offset, written, "nn_instruction.out_address"},
                  .flushes = d.nn_layer_flush && !(d.no_flush && hw::generation_of(chip_).no_flush_holds_back)};
}

}  // namespace skillet::sim::vivante
