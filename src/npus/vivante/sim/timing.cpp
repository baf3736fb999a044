// Times of the NN and TP jobs of a command stream: reads descriptors as the simulated chip does, then counts units and
// bytes.
#include "npus/vivante/sim/timing.h"

#include "base/bytes.h"
#include "npus/vivante/sim/field_check.h"
#include "npus/vivante/sim/front_end.h"
#include "npus/vivante/sim/nn_checks.h"
#include "npus/vivante/sim/tp_job.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

constexpr TimingParameter kRows[] = {
#define TIMING(chip, jobs, name, value, unit, mark, source) {#chip, #jobs, #name, value, unit, #mark, source},
#include "npus/vivante/sim/timing_params.def"
#undef TIMING
};

struct CoefficientBuffer {
  int64_t bytes = 0;
  double density = 1;  // share of the weights that are not in a run of zeros
};

// From the headers of the streams alone: a stream without runs contains all weights.
double density_v7(std::span<const uint8_t> buffer, int64_t header_bytes, const hw::ChipRow& chip,
                  const CoefficientShape& shape) {
  auto at = static_cast<size_t>(header_bytes);
  double there = 0, all = 0;
  for (int core = 0; core < chip.nn_cores; ++core) {
    const auto size = load_le<uint32_t>(buffer.data() + core * 4);
    if (size == 0) break;
    const int run_bits = buffer[at];
    const int kernels = load_le<uint16_t>(buffer.data() + at + 1);
    all += static_cast<double>(kernels) * static_cast<double>(shape.planes * shape.taps());
    there += (size * 8.0 - 24 - 64.0 * kernels) / (8 + run_bits);
    at += size;
  }
  return all == 0 ? 1 : std::clamp(there / all, 0.0, 1.0);
}

class VivanteTimer final : public Timer {
 public:
  VivanteTimer(const hw::ChipRow& chip, TimingParameters parameters) : Timer(std::move(parameters)), chip_(chip) {}

  Result<std::vector<Cost>> time_job(const Job& job, const Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, words_of(job));
    std::vector<Cost> costs;
    const auto keep = [&](Result<Cost> cost) -> Result<void> {
      if (!cost.ok()) return std::move(cost).error();
      costs.push_back(std::move(cost).value());
      return {};
    };
    const Units units{.run_nn = [&](const StartedJob& one) { return keep(time_nn(one.address, memory)); },
                      .run_tp = [&](const StartedJob& one) { return keep(time_tp(one.address, memory)); }};
    SK_TRY(run_stream(stream, units, kept_));
    return costs;
  }

  Result<std::vector<Cost>> time_layers(std::span<const Layer> layers, Fusion fusion) const override {
    return price_layers(chip_, parameters(), layers, fusion);
  }

 private:
  Result<CoefficientBuffer> coefficients(const hw::NnInstruction& d, const Memory& memory) const {
    constexpr const char* kWhat = "coefficients";
    const CoefficientFormat& format = chip_.generation >= 8 ? kCoefficientFormatV8 : kCoefficientFormatV7;
    const CoefficientShape shape = coefficient_shape(d);
    const int64_t head = format.header_bytes(chip_);
    SK_TRY_ASSIGN(const std::span<uint8_t> header,
                  memory.at(d.kernel_address.offset, static_cast<uint64_t>(head), kWhat));
    SK_TRY_ASSIGN(const int64_t size, format.buffer_bytes(header, chip_, shape));
    SK_TRY_ASSIGN(const std::span<uint8_t> buffer,
                  memory.at(d.kernel_address.offset, static_cast<uint64_t>(size), kWhat));
    return CoefficientBuffer{size, &format == &kCoefficientFormatV7 ? density_v7(buffer, head, chip_, shape) : 1};
  }

  Result<Cost> time_nn(uint64_t address, const Memory& memory) const {
    SK_TRY_ASSIGN(const auto words, descriptor_words(memory, address, hw::kNnInstructionWords, "nn_instruction"));
    const hw::NnInstruction d = hw::unpack_nn_instruction(chip_, words).fields;
    SK_TRY(check_geometry(d, chip_));
    SK_TRY_ASSIGN(const CoefficientBuffer kernels, coefficients(d, memory));
    const NnJob job = make_job(d, chip_, TieRule::half_up);
    const Shape s{.out_width = d.out_x_size,
                  .out_height = d.out_y_size,
                  .kernels = d.out_z_size,
                  .in_width = d.in_x_size,
                  .in_height = d.in_y_size,
                  .planes = d.kernel_z_size,
                  .kernel_width = d.kernel_x_size,
                  .kernel_height = d.kernel_y_size,
                  .tile_width = d.out_tile_x_size,
                  .tile_height = d.out_tile_y_size,
                  .superblocks = ceil_div(ceil_div(int64_t{d.out_z_size}, chip_.nn_cores), int64_t{d.kernels_per_core}),
                  .depthwise = d.depthwise};
    const auto once = static_cast<double>(pixels_read(s) * s.planes);
    // A superblock of native depthwise kernels reads only its own planes.
    const double again = s.depthwise ? 0 : once * static_cast<double>(s.superblocks - 1);
    const bool kept = d.image_caching_mode == hw::Caching::full;
    return price(parameters(),
                 {.nn_cycles = static_cast<double>(nn_cycles(multipliers_of(chip_, parameters()), s)) *
                               zero_factor(parameters(), kernels.density),
                  .read_bytes = static_cast<double>(kernels.bytes) + once + (kept ? 0 : again),
                  .written_bytes = static_cast<double>(job.out_width * job.out_height * job.out_planes),
                  .on_chip_bytes = kept ? again : 0},
                 fmt::format("NN {}x{}", s.kernel_height, s.kernel_width));
  }

  Result<Cost> time_tp(uint64_t address, const Memory& memory) const {
    SK_TRY_ASSIGN(const auto words, descriptor_words(memory, address, hw::kTpInstructionWords, "tp_instruction"));
    const hw::TpInstruction d = bits::unpack<hw::TpInstruction>(words).fields;
    if (d.in_tile_x_inc == 0 || d.in_tile_y_inc == 0)
      return skillet::error(ErrorCode::device, "tp_instruction.in_tile_inc = 0");
    const TpJob job = walk_of(d);
    const auto bytes = static_cast<double>(job.elements());
    return price(parameters(), {.moved_bytes = 2 * bytes, .read_bytes = bytes, .written_bytes = bytes}, "TP");
  }

  const hw::ChipRow& chip_;
  KeptStates kept_;
};

}  // namespace

Multipliers multipliers_of(const hw::ChipRow& chip, const TimingParameters& parameters) {
  return {.cores = chip.nn_cores,
          .patches = chip.generation < 8,
          .patch = static_cast<int64_t>(parameters.get("patch_products")),
          .depth = static_cast<int64_t>(parameters.get("depth_products"))};
}

double zero_factor(const TimingParameters& parameters, double density) {
  return density + (1 - density) * parameters.get("zero_cost");
}

Cost price(const TimingParameters& p, const Work& work, std::string what) {
  Cost cost{.what = std::move(what),
            .cycles = work.nn_cycles,
            .read_bytes = work.read_bytes,
            .written_bytes = work.written_bytes,
            .on_chip_bytes = work.on_chip_bytes};
  const UnitTime busy[] = {{"NN", work.nn_cycles / (p.get("clock_ghz") * 1e3)},
                           {"DRAM", (work.read_bytes + work.written_bytes) / (p.get("dram_gbps") * 1e3)},
                           {"TP", work.moved_bytes / (p.get("tp_share") * p.get("dram_gbps") * 1e3)}};
  cost.set(busy, p.get("overlap"), p.get("least_us"));
  return cost;
}

std::span<const TimingParameter> timing_rows() { return kRows; }

std::unique_ptr<Timer> make_timer(std::string_view chip, TimingParameters values) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  return row == nullptr ? nullptr : std::make_unique<VivanteTimer>(*row, std::move(values));
}

}  // namespace skillet::sim::vivante
