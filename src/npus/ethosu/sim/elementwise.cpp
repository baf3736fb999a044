// Functions of one or two operands, element by element (hardware specification, section 8.5).
#include "npus/ethosu/sim/operation.h"

namespace skillet::sim::ethosu {
namespace {

using hw::ElementwiseMode;

// An operand's values; empty for a constant.
struct Values {
  Operand operand;
  std::vector<int32_t> values;

  Result<void> read(Context& context) {
    if (operand.is_constant) return {};
    SK_TRY_ASSIGN(values, load(operand.map, context));
    return {};
  }
  int64_t at(uint32_t y, uint32_t x, uint32_t c) const {
    if (values.empty()) return operand.constant;
    const FeatureMap& map = operand.map;
    const size_t row = map.height == 1 ? 0 : y, column = map.width == 1 ? 0 : x, channel = map.depth == 1 ? 0 : c;
    return int64_t{values[(row * map.width + column) * map.depth + channel]} - map.zero_point;
  }
  int64_t ruled(int64_t value) const { return operand.rule.of(value); }
};

class Elementwise {
 public:
  Elementwise(Context& context, Output output, ElementwiseMode mode)
      : context_(context), output_(std::move(output)), mode_(mode) {}

  Result<void> run() {
    const FeatureMap& output = output_.map();
    SK_TRY(context_.work.spend({output.elems(), kRunWork}));
    SK_TRY_ASSIGN(Operands operands, operands_of(context_, mode_, output));
    is_swapped_ = operands.is_swapped;
    is_word_ = operands.first.map.precision == hw::Precision::bits_32;
    SK_TRY(context_.quirks.hang_if(QuirkName::words_hang, is_word_));
    first_.operand = std::move(operands.first), second_.operand = std::move(operands.second);
    SK_TRY(first_.read(context_));
    if (!is_unary(mode_)) SK_TRY(second_.read(context_));
    if (!output_.has_scale_per_channel()) {
      const auto scale = context_.registers.get<hw::OfmScale>();
      scale_ = {scale.scale, scale.shift};
    }
    std::vector<int32_t> results(static_cast<size_t>(output.elems()));
    size_t at = 0;
    for (uint32_t y = 0; y < output.height; ++y) {
      SK_TRY(check_stop());
      for (uint32_t x = 0; x < output.width; ++x) {
        for (uint32_t c = 0; c < output.depth; ++c, ++at)
          results[at] = result_of(first_.at(y, x, c), second_.at(y, x, c));
      }
    }
    return store(output, results, context_);
  }

 private:
  int64_t scaled(int64_t value) const { return output_.scaled(value, scale_, first_.operand.map); }

  int32_t result_of(int64_t first, int64_t second) const {
    if (mode_ == ElementwiseMode::lrelu) return output_.stored(leaky(first));
    first = first_.ruled(first), second = is_unary(mode_) ? second : second_.ruled(second);
    const int64_t a = is_swapped_ ? second : first, b = is_swapped_ ? first : second;
    switch (mode_) {
      case ElementwiseMode::mul: return output_.stored(scaled(limited(__int128{a} * b)));
      case ElementwiseMode::add: return output_.stored(scaled(sum(a + b)));
      case ElementwiseMode::sub: return output_.stored(scaled(sum(a - b)));
      case ElementwiseMode::min: return output_.stored(scaled(std::min(a, b)));
      case ElementwiseMode::max: return output_.stored(scaled(std::max(a, b)));
      case ElementwiseMode::abs: return output_.stored(scaled(a < 0 ? -a : a));
      case ElementwiseMode::clz: return output_.stored(std::countl_zero(static_cast<uint32_t>(a)));
      case ElementwiseMode::shr:
        return output_.stored(rescale(a, {1, static_cast<uint32_t>(b) & 63}, output_.rounding()));
      default: break;
    }
    return output_.stored(static_cast<int32_t>(static_cast<uint32_t>(a) << (static_cast<uint32_t>(b) & 31)));
  }

  int64_t sum(int64_t exact) const {
    const bool is_cut = is_word_ && context_.quirks.has(QuirkName::sums_end_at_32_bits);
    return is_cut ? static_cast<int32_t>(static_cast<uint32_t>(exact)) : exact;
  }

  // On U55 and U65 the output's scale applies to values below zero; U85 has one scale for each sign.
  int64_t leaky(int64_t value) const {
    if (!first_.operand.rule.is_scaled) return value >= 0 ? value : scaled(value);
    return scaled(value >= 0 ? first_.ruled(value) : second_.ruled(value));
  }

  Context& context_;
  Output output_;
  ElementwiseMode mode_;
  Values first_, second_;
  bool is_swapped_ = false, is_word_ = false;
  Scale scale_;
};

}  // namespace

Result<void> combine(Context& context, ElementwiseMode mode) {
  if (mode > ElementwiseMode::shl)
    return error(ErrorCode::unsupported, "op_elementwise.mode {} is unknown, or not modelled", static_cast<int>(mode));
  SK_TRY_ASSIGN(Output output, Output::of(context));
  return Elementwise(context, std::move(output), mode).run();
}

}  // namespace skillet::sim::ethosu
