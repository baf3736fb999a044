// Functions of one or two operands, element by element (hardware specification, section 8.5).
#include "npus/ethosu/sim/operation.h"

namespace skillet::sim::ethosu {
namespace {

using hw::ElementwiseMode;

constexpr bool is_unary(ElementwiseMode mode) {
  return mode == ElementwiseMode::lrelu || mode == ElementwiseMode::abs || mode == ElementwiseMode::clz;
}

class Elementwise {
 public:
  Elementwise(Context& context, Output output, ElementwiseMode mode)
      : context_(context), output_(std::move(output)), mode_(mode) {}

  Result<void> run() {
    const FeatureMap& output = output_.map();
    SK_TRY(context_.work.spend({output.elems(), kRunWork}));
    input_ = input_of(context_.registers, context_.address_bits());
    input_.height = output.height, input_.width = output.width, input_.depth = output.depth;
    SK_TRY_ASSIGN(const std::vector<int32_t> first, load(input_, context_));
    SK_TRY(read_second());
    SK_TRY(read_scales());
    std::vector<int32_t> results(first.size());
    size_t at = 0;
    for (uint32_t y = 0; y < output.height; ++y) {
      SK_TRY(check_stop());
      for (uint32_t x = 0; x < output.width; ++x) {
        for (uint32_t c = 0; c < output.depth; ++c, ++at)
          results[at] = result_of(int64_t{first[at]} - input_.zero_point, second_at(y, x, c));
      }
    }
    return store(output, results, context_);
  }

 private:
  Result<void> read_second() {
    if (is_unary(mode_)) return {};
    const auto broadcast = context_.registers.get<hw::Ifm2Broadcast>();
    is_swapped_ = broadcast.swapped;
    if (broadcast.constant) {
      const auto precision = context_.registers.get<hw::Ifm2Precision>();
      const uint32_t value = context_.registers.get<hw::Ifm2Scalar>().value;
      const uint32_t zero_point = context_.registers.get<hw::Ifm2ZeroPoint>().value;
      constant_ = precision.is_signed ? static_cast<int16_t>(value) - static_cast<int16_t>(zero_point)
                                      : static_cast<int32_t>(value) - static_cast<int32_t>(zero_point);
      return {};
    }
    second_map_ = input2_of(context_.registers, context_.address_bits());
    second_map_.height = broadcast.height ? 1 : output_.map().height;
    second_map_.width = broadcast.width ? 1 : output_.map().width;
    second_map_.depth = broadcast.depth ? 1 : output_.map().depth;
    SK_TRY_ASSIGN(second_, load(second_map_, context_));
    return {};
  }

  Result<void> read_scales() {
    const Registers& registers = context_.registers;
    const auto precision = registers.get<hw::IfmPrecision>();
    operand_rounding_ = precision.round_mode;
    scale_mode_ = precision.scale_mode;
    if (!output_.has_scale_per_channel()) {
      const auto scale = registers.get<hw::OfmScale>();
      scale_ = {scale.scale, scale.shift};
    }
    if (mode_ != ElementwiseMode::add && mode_ != ElementwiseMode::sub) return {};
    if (scale_mode_ > hw::OperandScale::b_32 || operand_rounding_ > hw::Rounding::natural)
      return error(ErrorCode::fault, "ifm_precision: scale_mode {}, round_mode {} are unknown",
                   static_cast<int>(scale_mode_), static_cast<int>(operand_rounding_));
    const auto a = registers.get<hw::OpaScale>();
    a_ = {a.scale, a.shift};
    if (scale_mode_ == hw::OperandScale::both_16) b_ = {registers.get<hw::OpbScale>().scale, 0};
    return {};
  }

  int64_t second_at(uint32_t y, uint32_t x, uint32_t c) const {
    if (second_.empty()) return constant_;
    const size_t row = second_map_.height == 1 ? 0 : y, column = second_map_.width == 1 ? 0 : x;
    const size_t channel = second_map_.depth == 1 ? 0 : c;
    return int64_t{second_[(row * second_map_.width + column) * second_map_.depth + channel]} - second_map_.zero_point;
  }

  int64_t scaled(int64_t value) const { return output_.scaled(value, scale_, input_); }

  int32_t result_of(int64_t first, int64_t second) const {
    const int64_t a = is_swapped_ ? second : first, b = is_swapped_ ? first : second;
    switch (mode_) {
      case ElementwiseMode::mul: return output_.stored(scaled(a * b));
      case ElementwiseMode::add: return output_.stored(scaled(operand_a(a) + operand_b(b)));
      case ElementwiseMode::sub: return output_.stored(scaled(operand_a(a) - operand_b(b)));
      case ElementwiseMode::min: return output_.stored(scaled(std::min(a, b)));
      case ElementwiseMode::max: return output_.stored(scaled(std::max(a, b)));
      case ElementwiseMode::lrelu: return output_.stored(a >= 0 ? a : scaled(a));
      case ElementwiseMode::abs: return output_.stored(scaled(a < 0 ? -a : a));
      case ElementwiseMode::clz: return output_.stored(std::countl_zero(static_cast<uint32_t>(a)));
      case ElementwiseMode::shr:
        return output_.stored(rescale(a, {1, static_cast<uint32_t>(b) & 63}, output_.rounding()));
      case ElementwiseMode::shl:
        return output_.stored(static_cast<int32_t>(static_cast<uint32_t>(a) << (static_cast<uint32_t>(b) & 31)));
    }
    return 0;
  }

  // The operand that is not scaled stands as far to the left as the other was before its scale.
  uint32_t operand_bits() const { return input_.precision == hw::Precision::bits_16 ? 15 : 20; }
  int64_t operand_a(int64_t value) const { return operand(value, hw::OperandScale::a_32, a_.scale); }
  int64_t operand_b(int64_t value) const { return operand(value, hw::OperandScale::b_32, b_.scale); }
  int64_t operand(int64_t value, hw::OperandScale scaled_in, uint32_t scale) const {
    if (scale_mode_ == hw::OperandScale::both_16) return value * static_cast<int64_t>(scale & 0xFFFF);
    if (scale_mode_ == scaled_in) return rescale(value, a_, operand_rounding_, operand_bits());
    return value * (int64_t{1} << (operand_bits() - 1));
  }

  Context& context_;
  Output output_;
  ElementwiseMode mode_;
  FeatureMap input_, second_map_;
  std::vector<int32_t> second_;
  int64_t constant_ = 0;
  bool is_swapped_ = false;
  hw::Rounding operand_rounding_{};
  hw::OperandScale scale_mode_{};
  Scale scale_, a_, b_;
};

}  // namespace

Result<void> combine(Context& context, ElementwiseMode mode) {
  if (mode > ElementwiseMode::shl)
    return error(ErrorCode::fault, "op_elementwise.mode {} is unknown", static_cast<int>(mode));
  SK_TRY_ASSIGN(Output output, Output::of(context));
  return Elementwise(context, std::move(output), mode).run();
}

}  // namespace skillet::sim::ethosu
