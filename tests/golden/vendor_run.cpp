#include "vendor_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/int_math.h"
#include "npus/rockchip/sim/npu.h"
#include "vendor_case.h"
#include "vendor_float.h"
#include "vendor_operands.h"
#include "vendor_run_capture.h"

namespace skillet::golden {
namespace {

namespace simulator = sim::rockchip;

constexpr int32_t kAtom = 16;

constexpr uint64_t kCommandsAt = 0x100000, kInputAt = 0x1000000, kWeightsAt = 0x2000000, kCoefficientsAt = 0x3000000,
                   kShiftsAt = 0x3800000, kScaleAt = 0x3C00000, kOutputAt = 0x4000000;
class Run {
 public:
  Run(const VendorCase& c, const VendorStep& step, const nlohmann::json& task)
      : c_(c), s_(step), words_(c.words(task)), in_(input()), out_(output()) {}

  Result<ReplayRow> run(simulator::Npu& npu, int core) {
    SK_TRY_ASSIGN(const Bytes commands, stream());
    const auto fill = [&](std::string_view role) { return c_.buffer(s_.number, role).value_or(Bytes(64)); };
    const auto count = static_cast<uint32_t>(commands.size() / kWordBytes);
    Bytes code = commands;
    code.resize(align_up(code.size(), size_t{16}));  // padded as they are fetched
    Bytes weights = fill("weights"), coefficients = fill("coefficients"), shifts(64),
          scale = slope_operand(std::exp2(kSlopeShift));
    constexpr uint32_t kShiftWord = 0x0E0E;
    store_le(shifts.data(), has_slope(words_) ? slope_shifts(kShiftWord) : kShiftWord);
    std::mt19937 random(7);
    for (int32_t y = 0; y < in_.height; ++y)
      for (int32_t x = 0; x < in_.width; ++x)
        for (int32_t c = 0; c < in_.channels; ++c) in_.bytes[in_.at(y, x, c)] = static_cast<uint8_t>(random());
    sim::Memory memory;
    SK_TRY(memory.map(kCommandsAt, code, "commands"));
    SK_TRY(memory.map(kInputAt, in_.bytes, "input"));
    SK_TRY(memory.map(kWeightsAt, weights, "weights"));
    SK_TRY(memory.map(kCoefficientsAt, coefficients, "coefficients"));
    SK_TRY(memory.map(kShiftsAt, shifts, "shift word"));
    SK_TRY(memory.map(kScaleAt, scale, "scale"));
    SK_TRY(memory.map(kOutputAt, out_.bytes, "output"));
    SK_TRY_ASSIGN(const simulator::TaskResult done,
                  npu.run_task(core, {.regcmd = kCommandsAt, .regcmd_count = count}, memory));
    if (!done.stall.empty()) return error(ErrorCode::timeout, "{}", done.stall);
    return compared();
  }

 private:
  Surfaces input() const {
    const VendorOp& op = s_.op;
    const int64_t pitch = is_pool(op) ? value_of(words_, 0x7028) : int64_t{value_of(words_, 0x1094)} * kAtom;
    return {op.in_height, op.in_width, op.in_channels, pitch};
  }
  Surfaces output() const {
    const VendorOp& op = s_.op;
    const int64_t pitch = is_pool(op) ? value_of(words_, 0x607C) : int64_t{value_of(words_, 0x401C)} * kAtom;
    return {op.out_height, op.out_width, op.out_channels, pitch};
  }

  // Fills in the addresses of buffers, and an end without a next program.
  Result<Bytes> stream() const {
    static const std::map<uint16_t, uint64_t> kPlaces = {
        {0x1088, kInputAt},  {0x701C, kInputAt},        {0x1110, kWeightsAt}, {0x4018, kOutputAt},
        {0x6070, kOutputAt}, {0x5020, kCoefficientsAt}, {0x5024, kShiftsAt},  {0x502C, kScaleAt}};
    Words all = words_;
    for (Word& one : all)
      if (const auto at = kPlaces.find(one.address); at != kPlaces.end())
        one.value += static_cast<uint32_t>(at->second);
    const uint32_t blocks = is_pool(s_.op) ? 0x60 : 0x1D;
    all.insert(all.end(), {{}, {0x0101, 0x0014, 0}, {0x0041, 0, 0}, {0x0081, 0x0008, blocks}});
    Bytes bytes(all.size() * kWordBytes);
    for (size_t i = 0; i < all.size(); ++i)
      store_le(bytes.data() + i * kWordBytes,
               uint64_t{all[i].target} << 48 | uint64_t{all[i].value} << 16 | all[i].address);
    return bytes;
  }

  Result<ReplayRow> compared() const {
    const FloatModel model(s_, in_);
    return compare_surfaces(out_, [&](int32_t y, int32_t x, int32_t c) { return model.of(y, x, c); });
  }

  const VendorCase& c_;
  const VendorStep& s_;
  const Words words_;
  Surfaces in_, out_;
};

std::vector<ReplayRow> rows_of(const VendorCase& c, const npu::Chip& chip, const std::string& name) {
  const auto reason = [&](std::string what, ReplayClass result, std::string why) {
    return ReplayRow{.name = std::move(what), .result = result, .reason = std::move(why)};
  };
  const auto steps = vendor_steps(c, chip, name);
  if (!steps.ok()) return {reason(name, ReplayClass::not_comparable, steps.error().message)};
  if (is_of_floats(c)) return {reason(name, ReplayClass::not_comparable, "16-bit floats")};
  auto npu = simulator::Npu::create(chip.name);
  if (!npu.ok()) return {reason(name, ReplayClass::fault, npu.error().message)};
  std::vector<ReplayRow> rows;
  std::set<int> others;
  for (const nlohmann::json& task : c.j.at("tasks")) others.insert(task.at("op").get<int>());
  constexpr int64_t kSecondBase = 7168;
  for (const VendorStep& step : *steps) {
    others.erase(step.number);
    for (const nlohmann::json& task : c.j.at("tasks")) {
      // Halves for two cores wait for each other; the case also has a program of all rows.
      const int64_t base = task.value("cbuf_base", int64_t{0});
      const bool whole = task.value("out_rows", step.op.out_height) == step.op.out_height;
      if (task.at("op") != step.number || task.value("paired", false) || task.value("helper", false) || !whole)
        continue;
      const int core = base == kSecondBase ? 1 : 0;
      auto row = Run(c, step, task).run(**npu, core);
      const std::string what = fmt::format("{}:{}{}", name, step.number, core == 1 ? ":core1" : "");
      if (std::ranges::find(rows, what, &ReplayRow::name) != rows.end()) continue;
      rows.push_back(row.ok() ? std::move(*row) : reason(what, ReplayClass::fault, row.error().message));
      rows.back().name = what;
    }
  }
  for (const int number : others) {
    const std::string what = fmt::format("{}:{}", name, number);
    auto row = run_capture_of(c, chip, name, number, *steps);
    rows.push_back(row.ok() ? std::move(*row) : reason(what, ReplayClass::fault, row.error().message));
    rows.back().name = what;
  }
  if (rows.empty()) rows.push_back(reason(name, ReplayClass::not_comparable, "no operation that is modelled"));
  return rows;
}

}  // namespace

std::vector<ReplayRow> run_vendor_case(const std::string& dir, const npu::Chip& chip, const std::string& name) {
  const auto c = read_vendor_case(fmt::format("{}/{}/{}", dir, chip.name, name));
  if (!c.ok()) return {{.name = name, .result = ReplayClass::fault, .reason = c.error().message}};
  try {
    return rows_of(*c, chip, name);
  } catch (const nlohmann::json::exception& problem) {
    return {{.name = name, .result = ReplayClass::fault, .reason = problem.what()}};
  }
}

}  // namespace skillet::golden
