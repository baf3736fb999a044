#include "vendor_run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "base/int_math.h"
#include "npus/rockchip/sim/npu.h"
#include "vendor_capture.h"
#include "vendor_case.h"

namespace skillet::golden {
namespace {

namespace simulator = sim::rockchip;

constexpr uint64_t kCommandsAt = 0x100000, kInputAt = 0x1000000, kWeightsAt = 0x2000000, kCoefficientsAt = 0x3000000,
                   kShiftsAt = 0x3800000, kOutputAt = 0x4000000;
constexpr int32_t kAtom = 16, kOverRead = 32768;

bool is_pool(const VendorOp& op) { return op.type == "maxpool" || op.type.starts_with("avgpool"); }

// A tensor in surfaces of 16 channels.
struct Surfaces {
  int32_t height = 0, width = 0, channels = 0;
  int64_t pitch = 0;  // bytes
  Bytes bytes;

  Surfaces(int32_t h, int32_t w, int32_t c, int64_t p)
      : height(h), width(w), channels(c), pitch(p), bytes(static_cast<size_t>(p * ceil_div(c, kAtom) + kOverRead)) {}
  size_t at(int32_t y, int32_t x, int32_t c) const {
    return static_cast<size_t>(c / kAtom * pitch + (int64_t{y} * width + x) * kAtom + c % kAtom);
  }
  int32_t value(int32_t y, int32_t x, int32_t c) const { return static_cast<int8_t>(bytes[at(y, x, c)]); }
};

uint32_t value_of(const Words& words, uint16_t address) {
  const auto found = std::ranges::find(words, address, &Word::address);
  return found == words.end() ? 0 : found->value;
}

// Without quantization: what each output is, in steps of it.
class FloatModel {
 public:
  FloatModel(const VendorStep& step, const Surfaces& in) : s_(step), in_(in) {}

  double of(int32_t y, int32_t x, int32_t channel) const {
    if (is_pool(s_.op)) return pooled(y, x, channel);
    double sum = s_.conv.bias[static_cast<size_t>(channel)];
    const int32_t inputs = s_.op.type == "depthwise" ? 1 : s_.op.in_channels;
    for (int32_t i = 0; i < inputs; ++i) sum += products(y, x, channel, i, inputs);
    if (s_.words.is_limited) sum = std::max(sum, 0.0);
    if (s_.words.is_limited && s_.words.limit != INT32_MAX) sum = std::min(sum, kSix);
    return sum / s_.out.scale + s_.out.zero;
  }

 private:
  static constexpr double kSix = 6;

  template <typename Visit>
  void taps(int32_t y, int32_t x, Visit visit) const {
    const VendorOp& op = s_.op;
    for (int32_t ky = 0; ky < op.kernel_height; ++ky) {
      for (int32_t kx = 0; kx < op.kernel_width; ++kx) {
        const int32_t row = y * op.stride_y + ky - op.pad_top, column = x * op.stride_x + kx - op.pad_left;
        if (row >= 0 && row < in_.height && column >= 0 && column < in_.width)
          visit(row, column, ky * op.kernel_width + kx);
      }
    }
  }
  double products(int32_t y, int32_t x, int32_t channel, int32_t input, int32_t inputs) const {
    const auto count = static_cast<size_t>(s_.op.kernel_height * s_.op.kernel_width), o = static_cast<size_t>(channel);
    const int32_t from = inputs == 1 && s_.op.type == "depthwise" ? channel : input;
    double sum = 0;
    taps(y, x, [&](int32_t row, int32_t column, int32_t tap) {
      const int32_t w = s_.q.weights[(o * static_cast<size_t>(inputs) + static_cast<size_t>(input)) * count +
                                     static_cast<size_t>(tap)];
      sum += double{s_.q.scales[o]} * w * s_.in.scale * (in_.value(row, column, from) - s_.in.zero);
    });
    return sum;
  }
  double pooled(int32_t y, int32_t x, int32_t channel) const {
    double sum = 0, most = INT8_MIN;
    int32_t count = 0;
    taps(y, x, [&](int32_t row, int32_t column, int32_t) {
      sum += in_.value(row, column, channel), ++count;
      most = std::max<double>(most, in_.value(row, column, channel));
    });
    return s_.op.type == "maxpool" ? most : sum / std::max(count, 1);
  }

  const VendorStep& s_;
  const Surfaces& in_;
};

class Run {
 public:
  Run(const VendorCase& c, const VendorStep& step, const nlohmann::json& task)
      : c_(c), s_(step), words_(c.words(task)), in_(input()), out_(output()) {}

  Result<ReplayRow> run(simulator::Npu& npu, int core) {
    SK_TRY_ASSIGN(const Bytes commands, stream());
    const auto fill = [&](std::string_view role) { return c_.buffer(s_.number, role).value_or(Bytes(64)); };
    const auto count = static_cast<uint32_t>(commands.size() / kWordBytes);
    Bytes code = commands;
    code.resize(align_up(code.size(), size_t{16}));  // as they are fetched
    Bytes weights = fill("weights"), coefficients = fill("coefficients"), shifts(64);
    constexpr uint32_t kShiftWord = 0x0E0E;
    store_le(shifts.data(), kShiftWord);
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

  // Where buffers are, and an end without a next program.
  Result<Bytes> stream() const {
    static const std::map<uint16_t, uint64_t> kPlaces = {
        {0x1088, kInputAt},  {0x701C, kInputAt},        {0x1110, kWeightsAt}, {0x4018, kOutputAt},
        {0x6070, kOutputAt}, {0x5020, kCoefficientsAt}, {0x5024, kShiftsAt}};
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
    ReplayRow row{.result = ReplayClass::exact, .reason = {}};
    const FloatModel model(s_, in_);
    for (int32_t y = 0; y < out_.height; ++y) {
      for (int32_t x = 0; x < out_.width; ++x) {
        for (int32_t c = 0; c < out_.channels; ++c) {
          const double exact = std::clamp<double>(std::rint(model.of(y, x, c)), INT8_MIN, INT8_MAX);
          const int difference = std::abs(out_.value(y, x, c) - static_cast<int>(exact));
          ++row.elements;
          row.differing += difference != 0;
          row.max_difference = std::max(row.max_difference, difference);
        }
      }
    }
    if (row.differing > 0) row.result = row.max_difference <= 1 ? ReplayClass::within_1 : ReplayClass::worse;
    return row;
  }

  const VendorCase& c_;
  const VendorStep& s_;
  const Words words_;
  Surfaces in_, out_;
};

// A sum or difference of two inputs of the graph by the DPU alone, on tensors of a capture's random bytes.
class LoneSum {
 public:
  LoneSum(const VendorCase& c, const nlohmann::json& task) : c_(c), words_(c.words(task)), task_(task) {}

  // Whether its numbers are known: those of graph inputs and of the output.
  bool is_known() const {
    return task_.at("blocks") == "dpu" && c_.j.contains("operand_tensors") && c_.j.contains("tensors") &&
           value_of(words_, kEwCfg) == kAdds && tensors(false).size() == 2 && tensors(true).size() == 1;
  }
  Result<ReplayRow> run(simulator::Npu& npu) {
    SK_TRY_ASSIGN(capture::Capture capture, capture_of(c_, ""));
    capture::Submission& last = capture.submissions.back();
    sim::Memory memory;
    std::vector<Bytes> contents;
    for (const auto& buffer : last.buffers) {
      contents.emplace_back(buffer.bytes.begin(), buffer.bytes.end());
      contents.back().resize(buffer.size_bytes);
    }
    for (size_t i = 0; i < contents.size(); ++i) SK_TRY(memory.map(last.buffers[i].address, contents[i], "buffer"));
    const capture::Commands& commands = last.jobs.at(0).commands.back();
    const auto count = static_cast<uint32_t>(commands.size_bytes / kWordBytes);
    SK_TRY_ASSIGN(const simulator::TaskResult done,
                  npu.run_task(0, {.regcmd = static_cast<uint32_t>(commands.address), .regcmd_count = count}, memory));
    if (!done.stall.empty()) return error(ErrorCode::timeout, "{}", done.stall);
    return compared(last, contents);
  }

 private:
  static constexpr uint16_t kEwCfg = 0x407C, kEwScale = 0x4084;
  static constexpr uint32_t kAdds = 0x8002C0C0;

  std::vector<Quantized> tensors(bool outputs) const {
    std::vector<Quantized> out;
    for (const auto& [name, one] : c_.j.at("tensors").items()) {
      if (one.at("output") == outputs)
        out.push_back(quantize(one.at("min").get<double>(), one.at("max").get<double>()));
    }
    return out;
  }
  // In the order of buffers: the program names its output first, then the main operand, then the other one.
  ReplayRow compared(const capture::Submission& last, const std::vector<Bytes>& contents) const {
    ReplayRow row{.result = ReplayClass::exact, .reason = {}};
    const Bytes *out = nullptr, *in[2] = {};
    for (size_t i = 0, inputs = 0; i < contents.size(); ++i) {
      if (last.buffers[i].write) out = &contents[i];
      if (last.buffers[i].read && inputs < 2) in[inputs++] = &contents[i];
    }
    const std::vector<Quantized> from = tensors(false), to = tensors(true);
    const bool subtracts = static_cast<int16_t>(value_of(words_, kEwScale)) < 0;
    const auto count =
        static_cast<size_t>(value_of(words_, 0x401C)) * static_cast<size_t>(value_of(words_, 0x402C) + 1);
    for (size_t i = 0; i < count; ++i) {
      const double a = from[0].scale * (static_cast<int8_t>((*in[0])[i]) - from[0].zero);
      const double b = from[1].scale * (static_cast<int8_t>((*in[1])[i]) - from[1].zero);
      const double exact = std::rint((subtracts ? a - b : a + b) / to[0].scale + to[0].zero);
      const int difference =
          std::abs(static_cast<int8_t>((*out)[i]) - static_cast<int>(std::clamp<double>(exact, INT8_MIN, INT8_MAX)));
      ++row.elements;
      row.differing += difference != 0;
      row.max_difference = std::max(row.max_difference, difference);
    }
    if (row.differing > 0) row.result = row.max_difference <= 1 ? ReplayClass::within_1 : ReplayClass::worse;
    return row;
  }

  const VendorCase& c_;
  const Words words_;
  const nlohmann::json& task_;
};

std::vector<ReplayRow> rows_of(const VendorCase& c, const npu::Chip& chip, const std::string& name) {
  const auto reason = [&](std::string what, ReplayClass result, std::string why) {
    return ReplayRow{.name = std::move(what), .result = result, .reason = std::move(why)};
  };
  for (const nlohmann::json& task : c.j.at("tasks")) {
    LoneSum sum(c, task);
    if (!sum.is_known()) continue;
    auto npu = simulator::Npu::create(chip.name);
    auto row = npu.ok() ? sum.run(**npu) : Result<ReplayRow>(npu.error());
    const std::string what = fmt::format("{}:{}", name, task.at("op").get<int>());
    if (!row.ok()) return {reason(what, ReplayClass::fault, row.error().message)};
    row->name = what;
    return {std::move(*row)};
  }
  const auto steps = vendor_steps(c, chip, name);
  if (!steps.ok()) return {reason(name, ReplayClass::not_comparable, steps.error().message)};
  auto npu = simulator::Npu::create(chip.name);
  if (!npu.ok()) return {reason(name, ReplayClass::fault, npu.error().message)};
  std::vector<ReplayRow> rows;
  constexpr int64_t kSecondBase = 7168;
  for (const VendorStep& step : *steps) {
    for (const nlohmann::json& task : c.j.at("tasks")) {
      // Halves for two cores wait for each other; a program of all rows is there too.
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
