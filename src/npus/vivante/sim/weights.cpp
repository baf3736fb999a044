// The filters of NN jobs, by the decoders of coefficient streams.
#include "sim/weights.h"

#include "npus/vivante/sim/front_end.h"
#include "npus/vivante/sim/nn.h"
#include "npus/vivante/sim/nn_checks.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

constexpr int64_t kMostWeights = int64_t{1} << 28;

std::string_view order_word(StreamOrder order) {
  switch (order) {
    case StreamOrder::dense: return "patches";
    case StreamOrder::dense_rows: return "rows";
    case StreamOrder::dense_wide: return "wide_patches";
    case StreamOrder::six_planes: return "six_channels";
    case StreamOrder::kernel_major: return "kernels";
  }
  return "";
}

// Kernels that only fill up the cores write no plane of the output.
Result<Weights> spread(const hw::NnInstruction& d, const NnJob& job, const Coefficients& coefficients) {
  const auto taps = static_cast<size_t>(job.taps());
  Weights out{.kernels = job.out_planes,
              .planes = d.depthwise ? 1 : int64_t{d.kernel_z_size},
              .height = job.kernel_height,
              .width = job.kernel_width,
              .depthwise = d.depthwise,
              .zero_point = static_cast<uint8_t>(d.coef_zero_point)};
  const int64_t per_kernel = out.planes * job.taps();
  if (per_kernel > kMostWeights / out.kernels)
    return skillet::error(ErrorCode::malformed, "{} kernels of {} weights: too many to be shown", out.kernels,
                          per_kernel);
  out.bytes.assign(static_cast<size_t>(out.kernels * per_kernel), out.zero_point);
  out.biases.resize(static_cast<size_t>(out.kernels));
  for (const Kernel& kernel : coefficients.kernels) {
    const auto plane = static_cast<size_t>(kernel.output_offset / job.out_plane_bytes);
    if (plane >= out.biases.size()) continue;
    out.biases[plane] = static_cast<int32_t>(kernel.bias);
    uint8_t* const to = out.bytes.data() + plane * static_cast<size_t>(per_kernel);
    for (size_t i = 0; i < kernel.weights.size(); ++i) {
      const size_t from = d.depthwise ? 0 : kernel.planes[i / taps];
      to[from * taps + i % taps] = static_cast<uint8_t>(kernel.weights[i] + out.zero_point);
    }
  }
  return out;
}

Result<Weights> read_nn(NnUnit& unit, const hw::ChipRow& chip, uint64_t address, const Memory& memory) {
  SK_TRY_ASSIGN(const hw::NnInstruction d, unit.instruction(address, memory));
  SK_TRY(check_geometry(d, chip));
  SK_TRY_ASSIGN(const std::vector<Coefficients> readings, unit.readings(d, memory));
  const NnJob job = make_job(d, chip, TieRule::half_up);
  SK_TRY_ASSIGN(Weights first, spread(d, job, readings[0]));
  if (readings.size() > 1) first.order = order_word(readings[0].order);
  for (const Coefficients& reading : std::span(readings).subspan(1)) {
    SK_TRY_ASSIGN(Weights other, spread(d, job, reading));
    other.order = order_word(reading.order);
    first.others.push_back(std::move(other));
  }
  return first;
}

}  // namespace

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return skillet::error(ErrorCode::unsupported, "no such chip");
  SK_TRY_ASSIGN(const Options options, options_from_environment());
  NnUnit unit(*row, options);
  std::vector<std::optional<Weights>> all;
  const Units units{
      .run_nn = [&](const StartedJob& started) -> Result<void> {
        auto weights = read_nn(unit, *row, started.address, memory);
        all.emplace_back(weights.ok() ? std::move(weights).value() : Weights{.problem = weights.error().message});
        return {};
      },
      .run_tp = [&](const StartedJob&) -> Result<void> {
        all.emplace_back();
        return {};
      }};
  KeptStates kept;
  SK_TRY_ASSIGN(const auto stream, words_of(job));
  SK_TRY(run_stream(stream, units, kept));
  return all;
}

}  // namespace skillet::sim::vivante
