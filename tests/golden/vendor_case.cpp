#include "vendor_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "vendor_files.h"
#include "vendor_model.h"
#include "vendor_operands.h"

namespace skillet::golden {
namespace {

using nlohmann::json;

// Kinds of cases whose convolutions and pools our compiler writes like the vendor's.
constexpr std::string_view kKinds[] = {"conv",       "depthwise",      "conv-relu",       "pool-max",
                                       "pool-avg",   "pool-bare",      "pool-global",     "add-identity",
                                       "bottleneck", "conv-other-act", "conv-elementwise"};
constexpr size_t kGroupChannels = 8;
// Registers that contain addresses of other tensors: 0 in the container.
constexpr uint32_t kShifts = 0x5024;

struct Counts {
  int words = 0, bytes = 0, records = 0;  // words and bytes: those that differ
};

bool is_pool(const VendorOp& op) { return op.type == "maxpool" || op.type.starts_with("avgpool"); }
bool is_plain_conv(const json& o) {
  return (o.at("type") == "conv" || o.at("type") == "depthwise") && o.value("precision", "") == "i8" &&
         !o.value("packed_image", false) && !o.value("lut", false) && !o.value("ew", false);
}

ConvWords conv_words(const Words& words) {
  constexpr uint32_t kLimits = 0x902, kShiftBits = 63;
  return {.pad = static_cast<int32_t>(value_of(words, 0x1084)),
          .out_offset = static_cast<int32_t>(value_of(words, 0x40AC)),
          .limit = static_cast<int32_t>(value_of(words, 0x4070)),
          .multiplier = value_of(words, 0x40B0) & 0xFFFF,
          .shift = (value_of(words, 0x40B4) & kShiftBits) - (has_slope(words) ? kSlopeShift : 0),
          .is_limited = value_of(words, 0x4060) == kLimits,
          .has_slope = has_slope(words)};
}

// ---- ours ----

struct OurProgram {
  std::vector<Words> records;
  Bytes weights, operands;
};

void add_program(const npu::Program& program, OurProgram& out) {
  for (const npu::Job& job : program.jobs) {
    for (const npu::ByteRange& range : job.commands) {
      const npu::Buffer& buffer = program.buffers[range.buffer];
      Words words;
      for (uint64_t at = range.offset_bytes; at + kWordBytes <= range.offset_bytes + range.size_bytes;
           at += kWordBytes) {
        const auto word = load_le<uint64_t>(buffer.contents.data() + at);
        Word one{static_cast<uint16_t>(word >> 48), static_cast<uint16_t>(word), static_cast<uint32_t>(word >> 16)};
        for (const npu::Relocation& r : buffer.relocations) {
          if (r.at_byte == at && one.address != kShifts) one.value = static_cast<uint32_t>(r.target_offset_bytes);
        }
        words.push_back(one);
      }
      constexpr size_t kTrailer = 4;
      words.resize(words.size() - std::min(words.size(), kTrailer));
      out.records.push_back(std::move(words));
    }
  }
  for (const npu::Buffer& buffer : program.buffers) {
    if (buffer.name.starts_with("weights")) out.weights = Bytes(buffer.contents.begin(), buffer.contents.end());
    if (buffer.name.starts_with("operands")) out.operands = Bytes(buffer.contents.begin(), buffer.contents.end());
  }
}

// The vendor's compiler writes one program for each core alone, and two for both together.
Result<OurProgram> compile(const npu::Chip& chip, const ir::Graph& graph) {
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  OurProgram out;
  for (const char* const use : {"", "second_core", "two_halves"}) {
    npu::CompileOptions options{.tuning = npu::Tuning::recorded};
    if (*use != 0) options.switches = {use};
    SK_TRY_ASSIGN(const npu::Program program, driver->compile(chip, graph, options));
    add_program(program, out);
  }
  return out;
}

// ---- comparing ----

class Comparison {
 public:
  Comparison(const VendorCase& c, const npu::Chip& chip, std::string name)
      : c_(c), chip_(chip), name_(std::move(name)) {}

  Result<Outcome> run() {
    std::vector<const json*> inputs, outputs;
    for (const json& t : c_.j.at("tensors")) (t.at("output") == true ? outputs : inputs).push_back(&t);
    if (inputs.empty() || outputs.empty()) return not_compared("no tensors");
    state_ = quantize(inputs[0]->at("min").get<double>(), inputs[0]->at("max").get<double>());
    const auto& shape = inputs[0]->at("shape_nchw");
    height_ = shape.at(2), width_ = shape.at(3);
    last_ = quantize(outputs[0]->at("min").get<double>(), outputs[0]->at("max").get<double>());
    std::map<int, const json*> ops;
    for (const auto& [number, op] : c_.j.at("ops").items()) ops[std::stoi(number)] = &op;
    const bool cpu_follows = c_.j.at("kind") == "conv-other-act";  // the CPU computes the graph's output
    for (const auto& [number, op] : ops) SK_TRY(add(number, *op, !cpu_follows && number == ops.rbegin()->first));
    if (counts_.records == 0) return not_compared("no convolution or pool");
    const bool same = counts_.words == 0 && counts_.bytes == 0;
    return Outcome{name_, same ? "identical" : "differs", details_,
                   same ? "" : fmt::format("{} words, {} bytes", counts_.words, counts_.bytes)};
  }

  std::vector<VendorStep> take_steps() { return std::move(steps_); }

  Outcome not_compared(std::string_view why) const {
    return {name_, "not_compared", {fmt::format("kind {}: {}", c_.j.at("kind").get<std::string>(), why)}};
  }

 private:
  Result<void> add(int number, const json& o, bool is_last) {
    VendorOp op = vendor_op(o);
    const std::vector<Words> theirs = c_.records(number);
    if (is_pool(op)) {
      op.in_height = height_, op.in_width = width_;
      SK_TRY_ASSIGN(const ir::Graph graph, pool_graph(op, state_));
      SK_TRY_ASSIGN(const OurProgram ours, compile(chip_, graph));
      compare_records(number, theirs, ours.records);
      steps_.push_back({.number = number, .op = op, .in = state_, .out = state_});
    } else if (is_plain_conv(o) && !theirs.empty()) {
      SK_TRY(add_conv(number, op, theirs, is_last));
    } else {
      details_.push_back(fmt::format("op {}: {}, not compared", number, op.type));
    }
    height_ = op.out_height, width_ = op.out_width;
    return {};
  }

  Result<void> add_conv(int number, const VendorOp& op, const std::vector<Words>& theirs, bool is_last) {
    SK_TRY_ASSIGN(const FloatConv conv, float_conv(name_, number, op));
    const QuantizedConv q = quantize(conv, static_cast<size_t>(op.out_channels));
    const ConvWords words = conv_words(theirs[0]);
    const auto coefficients = c_.buffer(number, "coefficients"), weights = c_.buffer(number, "weights");
    const double largest = std::ranges::max(q.scales),
                 gain = std::ldexp(words.multiplier, -static_cast<int>(words.shift));
    if (scales_) settle_input(op, conv, q, coefficients, is_last, largest, words);
    const Quantized out =
        is_last ? last_ : Quantized{static_cast<float>(state_.scale * largest / gain), words.out_offset};
    SK_TRY_ASSIGN(const ir::Graph graph, conv_graph(op, conv, state_, out, words, scales_.has_value()));
    SK_TRY_ASSIGN(OurProgram ours, compile(chip_, graph));
    constexpr size_t kPoolWords = 31;  // the pool that makes the input
    std::erase_if(ours.records, [](const Words& one) { return one.size() == kPoolWords; });
    compare_records(number, theirs, ours.records);
    if (weights) compare_bytes(number, "weights", *weights, ours.weights);
    if (coefficients) compare_bytes(number, "coefficients", *coefficients, ours.operands);
    // The tensor is not an output of the graph: its scale follows from the gain, to 15 bits.
    scales_.emplace();  // from now on
    const double half = std::ldexp(0.5, -static_cast<int>(words.shift));
    scales_->meet(state_.scale * largest / (gain + half), state_.scale * largest / (gain - half));
    steps_.push_back({number, op, state_, out, conv, q, words});
    state_ = out;
    return {};
  }

  // The case lacks ranges of tensors between operations: the scale must agree with all values that contain it.
  void settle_input(const VendorOp& op, const FloatConv& conv, const QuantizedConv& q,
                    const std::optional<Bytes>& coefficients, bool is_last, double largest, const ConvWords& words) {
    ScaleRange range = *scales_;
    if (coefficients) {
      const size_t group = op.type == "depthwise" ? 48 : 64;
      std::vector<int32_t> sums;
      for (size_t c = 0; c < q.scales.size(); ++c) {
        const size_t at = c / kGroupChannels * group + c % kGroupChannels * 4;
        if (at + 4 <= coefficients->size()) sums.push_back(load_le<int32_t>(coefficients->data() + at));
      }
      meet_sums(conv, q, state_.zero, sums, range);
    }
    constexpr double kSix = 6;
    if (words.is_limited && words.limit != INT32_MAX)
      range.meet(kSix / ((words.limit + 0.5) * q.scales[0]), kSix / ((words.limit - 0.5) * q.scales[0]));
    if (is_last) {
      const double unit = last_.scale / largest, half = 0.5;
      const auto value = [&](double m) { return std::ldexp(m, -static_cast<int>(words.shift)) * unit; };
      range.meet(value(words.multiplier - half), value(words.multiplier + half));
    }
    state_.scale = static_cast<float>(range.middle());
  }

  void compare_records(int number, const std::vector<Words>& theirs, const std::vector<Words>& ours) {
    if (theirs.size() != ours.size()) {
      details_.push_back(fmt::format("op {}: {} programs, ours {}", number, theirs.size(), ours.size()));
      ++counts_.words;
    }
    for (size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i)
      compare_words(fmt::format("op {} program {}", number, i), theirs[i], ours[i]);
  }
  void compare_words(const std::string& what, const Words& theirs, const Words& ours) {
    ++counts_.records;
    if (theirs.size() != ours.size()) {
      details_.push_back(fmt::format("{}: {} words, ours {}", what, theirs.size(), ours.size()));
      ++counts_.words;
    }
    for (size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i) {
      if (theirs[i] == ours[i]) continue;
      ++counts_.words;
      details_.push_back(fmt::format("{}: word {}: {:04x} <- {:08x}, ours {:04x} <- {:08x}", what, i, theirs[i].address,
                                     theirs[i].value, ours[i].address, ours[i].value));
    }
  }
  // Our bytes may be longer: the word of shifts follows.
  void compare_bytes(int number, const char* what, const Bytes& theirs, const Bytes& ours) {
    int differing = 0;
    for (size_t i = 0; i < theirs.size(); ++i) differing += i >= ours.size() || ours[i] != theirs[i];
    if (differing == 0) return;
    counts_.bytes += differing;
    details_.push_back(fmt::format("op {}: {} of {} bytes of {} differ", number, differing, theirs.size(), what));
  }

  const VendorCase& c_;
  const npu::Chip& chip_;
  const std::string name_;
  Quantized state_, last_;            // of the operation's input; of the graph's output
  std::optional<ScaleRange> scales_;  // of the input, unless it is an input of the graph
  int32_t height_ = 0, width_ = 0;
  Counts counts_;
  std::vector<std::string> details_;
  std::vector<VendorStep> steps_;
};

}  // namespace

VendorOp vendor_op(const json& o) {
  const auto get = [&](const char* name, int32_t none) { return o.value(name, none); };
  VendorOp op{.type = o.at("type").get<std::string>()};
  op.in_channels = get("ic", get("c", 1)), op.out_channels = get("oc", get("c", 1));
  op.in_height = get("ih", 0), op.in_width = get("iw", 0);
  op.out_height = get("oh", 1), op.out_width = get("ow", 1);
  op.kernel_height = get("kh", 1), op.kernel_width = get("kw", 1);
  op.stride_y = get("sy", 1), op.stride_x = get("sx", 1);
  op.pad_top = get("pad_top", 0), op.pad_left = get("pad_left", 0);
  if (o.contains("pads_nibbles")) {
    const auto nibbles = std::stoul(o.at("pads_nibbles").get<std::string>(), nullptr, 16);
    op.pad_left = static_cast<int32_t>(nibbles & 15), op.pad_top = static_cast<int32_t>(nibbles >> 4 & 15);
  }
  return op;
}

bool is_vendor_case(const std::string& dir, const std::string& chip, const std::string& name) {
  return std::filesystem::exists(fmt::format("{}/{}/{}/case.json", dir, chip, name));
}

Outcome compare_vendor_case(const std::string& dir, const npu::Chip& chip, const std::string& name) {
  const auto failed = [&](const Error& error) { return Outcome{name, "failed", {error.message}}; };
  const auto c = read_vendor_case(fmt::format("{}/{}/{}", dir, chip.name, name));
  if (!c.ok()) return failed(c.error());
  try {  // the JSON library throws if a field is missing
    Comparison comparison(*c, chip, name);
    const auto kind = c->j.at("kind").get<std::string>();
    if (std::ranges::find(kKinds, kind) == std::end(kKinds))
      return comparison.not_compared("not written as the vendor does");
    auto outcome = comparison.run();
    return outcome.ok() ? std::move(*outcome) : failed(outcome.error());
  } catch (const json::exception& problem) {
    return failed(Error{ErrorCode::invalid_argument, fmt::format("{}: {}", name, problem.what())});
  }
}

Result<std::vector<VendorStep>> vendor_steps(const VendorCase& c, const npu::Chip& chip, const std::string& name) {
  try {
    Comparison comparison(c, chip, name);
    SK_TRY(comparison.run());
    return comparison.take_steps();
  } catch (const json::exception& problem) {
    return error(ErrorCode::invalid_argument, "{}: {}", name, problem.what());
  }
}

}  // namespace skillet::golden
