#include "vendor_run_capture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "npus/rockchip/sim/npu.h"
#include "vendor_capture.h"
#include "vendor_operands.h"

namespace skillet::golden {
namespace {

namespace simulator = sim::rockchip;

constexpr uint16_t kEwCfg = 0x407C, kEwOffset = 0x4080, kEwScale = 0x4084, kConv = 0x1024, kOutput = 0x4018,
                   kOutputPitch = 0x401C, kColumns = 0x4020, kRows = 0x4024, kChannels = 0x402C, kSecondPitch = 0x5040;
constexpr uint32_t kAdds = 0x8002C0C0, kLooksUp = 0x01004140, kOff = 0x010041C1;
constexpr int64_t kAtom = 16;

// Returns the value of a 16-bit field that stores a count less 1.
int32_t count_of(const Words& words, uint16_t address, unsigned at) {
  return static_cast<int32_t>(value_of(words, address) >> at & 0xFFFF) + 1;
}

VendorOp op_of(const Words& words) {
  constexpr uint32_t kStrideBits = 7;
  const uint32_t window = value_of(words, kConv), pads = value_of(words, 0x1080), strides = value_of(words, 0x1014);
  VendorOp op{.type = "conv"};
  op.in_channels = count_of(words, 0x107C, 0), op.out_channels = count_of(words, 0x3020, 0);
  op.in_width = count_of(words, 0x102C, 16), op.in_height = count_of(words, 0x102C, 0);
  op.out_width = count_of(words, 0x301C, 0), op.out_height = count_of(words, 0x301C, 16);
  op.kernel_width = static_cast<int32_t>(window >> 16 & 0xFF) + 1;
  op.kernel_height = static_cast<int32_t>(window >> 24) + 1;
  op.stride_x = static_cast<int32_t>(strides & kStrideBits);
  op.stride_y = static_cast<int32_t>(strides >> 3 & kStrideBits);
  op.pad_top = static_cast<int32_t>(pads & 0xFF), op.pad_left = static_cast<int32_t>(pads >> 8 & 0xFF);
  return op;
}

// The CPU takes the root of the NPU's output: the case's range is that of the root.
std::vector<Quantized> tensors(const VendorCase& c, bool outputs, double limit = HUGE_VAL) {
  const bool takes_root = c.folder.find("sqrt") != std::string::npos;
  std::vector<Quantized> out;
  for (const auto& [name, one] : c.j.at("tensors").items()) {
    const double least = one.at("min").get<double>(), most = one.at("max").get<double>();
    if (one.at("output") == outputs)
      out.push_back(takes_root && outputs ? quantize(0, most * most)
                                          : quantize(std::max(least, -limit), std::min(most, limit)));
  }
  return out;
}

// Runs one operation's capture, and has its tensors.
class CaptureRun {
 public:
  CaptureRun(const VendorCase& c, const std::string& name, const std::vector<VendorStep>& steps)
      : c_(c), name_(name), steps_(steps) {}

  Result<ReplayRow> run(const npu::Chip& chip, int number) {
    SK_TRY_ASSIGN(const capture::Submission submission, submission_of(c_, number));
    SK_TRY_ASSIGN(const auto npu, simulator::Npu::create(chip.name));
    sim::Memory memory;
    for (const auto& buffer : submission.buffers) {
      Bytes& bytes = contents_[buffer.address];
      bytes.assign(buffer.bytes.begin(), buffer.bytes.end());
      bytes.resize(buffer.size_bytes);
      SK_TRY(memory.map(buffer.address, bytes, "buffer"));
    }
    bool first = true;
    for (const capture::Commands& one : submission.jobs.at(0).commands) {
      words_ = words_at(one);
      const auto count = static_cast<uint32_t>(one.size_bytes / kWordBytes);
      SK_TRY_ASSIGN(const simulator::TaskResult done, npu->run_task(0,
                                                                    {.regcmd = static_cast<uint32_t>(one.address),
                                                                     .regcmd_count = count,
                                                                     .first_of_job = std::exchange(first, false)},
                                                                    memory));
      if (!done.stall.empty()) return error(ErrorCode::timeout, "{}", done.stall);
    }
    return value_of(words_, kConv) != 0 ? convolution() : alone();
  }

 private:
  Words words_at(const capture::Commands& one) const {
    const Bytes& bytes = contents_.at(one.address);
    Words out;
    for (size_t at = 0; at + kWordBytes <= one.size_bytes; at += kWordBytes) {
      const auto word = load_le<uint64_t>(bytes.data() + at);
      out.push_back(
          {static_cast<uint16_t>(word >> 48), static_cast<uint16_t>(word), static_cast<uint32_t>(word >> 16)});
    }
    return out;
  }
  Surfaces surfaces(uint16_t base, int32_t height, int32_t width, int32_t channels, int64_t pitch) const {
    Surfaces out(height, width, channels, pitch * kAtom);
    const Bytes& bytes = contents_.at(value_of(words_, base));
    std::copy_n(bytes.begin(), std::min(bytes.size(), out.bytes.size()), out.bytes.begin());
    return out;
  }
  Surfaces output() const {
    return surfaces(kOutput, count_of(words_, kRows, 0), count_of(words_, kColumns, 0), count_of(words_, kChannels, 0),
                    value_of(words_, kOutputPitch));
  }

  // Computes the convolution, with a tensor of the previous operation added, or a function of its sums.
  Result<ReplayRow> convolution() const {
    const Function function = function_of(name_);
    const bool adds = value_of(words_, kEwCfg) == kAdds;
    if (adds ? steps_.empty() : function == nullptr || value_of(words_, kEwCfg) != kLooksUp)
      return error(ErrorCode::unsupported, "{}: its convolution has no model", name_);
    VendorStep step{.op = op_of(words_)};
    step.number = adds ? steps_.back().number + 1 : 1;
    SK_TRY_ASSIGN(step.conv, float_conv(name_, step.number, step.op));
    step.q = quantize(step.conv, static_cast<size_t>(step.op.out_channels));
    step.in = tensors(c_, false).at(0), step.out = tensors(c_, true).at(0);
    const Surfaces in =
        surfaces(0x1088, step.op.in_height, step.op.in_width, step.op.in_channels, value_of(words_, 0x1094));
    const FloatModel model(step, in);
    const Surfaces second = adds ? surfaces(0x5038, step.op.out_height, step.op.out_width, step.op.out_channels,
                                            value_of(words_, kSecondPitch))
                                 : in;
    return compare_surfaces(output(), [&](int32_t y, int32_t x, int32_t c) {
      const double sum = model.real(y, x, c);
      const double value = adds ? sum + second.real(y, x, c, steps_.back().out) : function(sum);
      return value / step.out.scale + step.out.zero;
    });
  }

  Result<ReplayRow> alone() const {
    const Surfaces out = output();
    std::vector<Quantized> from = tensors(c_, false, most_of(name_));
    const std::vector<Quantized> to = tensors(c_, true);
    const uint32_t use = value_of(words_, kEwCfg);
    const bool is_product = multiplies(words_), takes_two = use == kAdds || is_product;
    if (from.size() == 1 && !steps_.empty()) from.push_back(steps_.back().out);
    // The main tensor is first, also if both are inputs of the graph.
    if (takes_two && from.size() == 2 && from[1].zero != -static_cast<int32_t>(value_of(words_, kEwOffset)))
      std::swap(from[0], from[1]);
    const Function function = function_of(name_);
    if (takes_two ? from.size() != 2 : function == nullptr || (use != kLooksUp && use != kOff))
      return error(ErrorCode::unsupported, "{}: the DPU alone computes what has no model", name_);
    const int64_t pitch = takes_two ? value_of(words_, kSecondPitch) : value_of(words_, kOutputPitch);
    const Surfaces in = surfaces(0x5018, out.height, out.width, out.channels, pitch);
    const Surfaces second = takes_two ? surfaces(0x5038, out.height, out.width, out.channels, pitch) : in;
    const double sign = static_cast<int16_t>(value_of(words_, kEwScale)) < 0 ? -1 : 1;
    return compare_surfaces(out, [&](int32_t y, int32_t x, int32_t c) {
      const double a = in.real(y, x, c, from[0]);
      const double b = second.real(y, x, c, from.back());
      const double value = !takes_two ? function(a) : is_product ? a * b : a + sign * b;
      return value / to.at(0).scale + to[0].zero;
    });
  }

  const VendorCase& c_;
  const std::string& name_;
  const std::vector<VendorStep>& steps_;
  std::map<uint64_t, Bytes> contents_;  // by address
  Words words_;                         // of the last task, with addresses
};

}  // namespace

bool is_of_floats(const VendorCase& c) { return c.j.at("kind").get<std::string>().ends_with("-f16"); }

Result<ReplayRow> run_capture_of(const VendorCase& c, const npu::Chip& chip, const std::string& name, int number,
                                 const std::vector<VendorStep>& steps) {
  return CaptureRun(c, name, steps).run(chip, number);
}

}  // namespace skillet::golden
