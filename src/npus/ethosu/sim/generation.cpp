#include "npus/ethosu/sim/generation.h"

namespace skillet::sim::ethosu {
namespace {

using hw::ElementwiseMode;

constexpr uint32_t kTanh = 3, kSigmoid = 4, kFirstTable = 16, kLastTable = 23;

Error not_modelled(std::string_view field, auto value) {
  return error(ErrorCode::unsupported, "{} {} is not modelled", field, static_cast<int>(value));
}

Result<OutputRules> rules_u5x(const Registers& registers, const FeatureMap& output) {
  const auto precision = registers.get<hw::OfmPrecision>();
  OutputRules out{.rounding = precision.round_mode,
                  .is_global = precision.scale_mode == hw::OutputScale::global,
                  .is_clamped = output.precision != hw::Precision::bits_32};
  if (out.rounding > hw::Rounding::natural)
    return error(ErrorCode::fault, "ofm_precision.round_mode {} is unknown", static_cast<int>(out.rounding));
  const auto activation = registers.get<hw::Activation>();
  out.has_table = activation.function >= kFirstTable && activation.function <= kLastTable;
  out.table = out.has_table ? activation.function - kFirstTable : 0;
  if (!out.has_table && activation.function != 0 && activation.function != kTanh && activation.function != kSigmoid)
    return error(ErrorCode::fault, "activation.function {} is unknown", activation.function);
  if (activation.function == kTanh) out.function = HardwareFunction::tanh;
  if (activation.function == kSigmoid) out.function = HardwareFunction::sigmoid;
  out.index_type = activation.clip_range;
  if (out.index_type == hw::ClipRange::of_output && out.has_table) {
    constexpr std::array kTypes = {hw::ClipRange::uint8, hw::ClipRange::int8};
    out.index_type =
        output.precision == hw::Precision::bits_8 ? kTypes[output.is_signed ? 1 : 0] : hw::ClipRange::int16;
  }
  return out;
}

Result<hw::Rounding> rounding_of(hw::RoundingU85 mode, std::string_view field) {
  if (mode == hw::RoundingU85::twice) return hw::Rounding::twice;
  if (mode == hw::RoundingU85::natural) return hw::Rounding::natural;
  return not_modelled(field, mode);
}

// Sets the activation. A table defines the type of its index and the width of a result.
Result<void> set_activation(const hw::ActivationU85& activation, const FeatureMap& output, OutputRules& out) {
  using Function = hw::ActivationFunction;
  struct Table {
    Function function;
    hw::ClipRange index;
    hw::Precision result;
  };
  constexpr Table kTables[] = {{Function::u8_to_u8, hw::ClipRange::uint8, hw::Precision::bits_8},
                               {Function::s8_to_s8, hw::ClipRange::int8, hw::Precision::bits_8},
                               {Function::s8_to_s16, hw::ClipRange::int8, hw::Precision::bits_16},
                               {Function::s8_to_s32, hw::ClipRange::int8, hw::Precision::bits_32},
                               {Function::s16_to_s16, hw::ClipRange::int16, hw::Precision::bits_16}};
  out.is_clamped = !activation.no_clip && output.precision != hw::Precision::bits_32;
  if (activation.no_clip && output.precision != hw::Precision::bits_32)
    return not_modelled("with results below 32 bits activation.no_clip", 1);
  switch (activation.function) {
    case Function::none: return {};
    case Function::tanh: out.function = HardwareFunction::tanh; return {};
    case Function::sigmoid: out.function = HardwareFunction::sigmoid; return {};
    default: break;
  }
  const auto* const found = std::ranges::find(kTables, activation.function, &Table::function);
  if (found == std::end(kTables) || found->result != output.precision)
    return not_modelled("with this width of results activation.function", activation.function);
  out.has_table = true;
  out.table = activation.table;
  out.index_type = found->index;
  return {};
}

Result<OutputRules> rules_u85(const Registers& registers, const FeatureMap& output) {
  const auto precision = registers.get<hw::OfmPrecisionU85>();
  if (precision.reverse != hw::Reverse::none) return not_modelled("ofm_precision.reverse", precision.reverse);
  if (precision.transpose != hw::Transpose::hwc) return not_modelled("ofm_precision.transpose", precision.transpose);
  const auto accumulator = registers.get<hw::AccFormatU85>();
  if (accumulator.input != hw::AccumulatorInput::zero) return not_modelled("acc_format.input", accumulator.input);
  if (accumulator.output_off) return not_modelled("acc_format.output_off", 1);
  const auto scale = registers.get<hw::OfmScaleU85>();
  if (scale.double_round != 0) return not_modelled("ofm_scale.double_round", scale.double_round);
  OutputRules out{.is_global = precision.scale_mode == hw::OutputScale::global};
  constexpr uint32_t kIndexShift = 16;  // the index is above the value
  out.is_index = scale.round_mode == hw::RoundingU85::down && scale.shift == kIndexShift && scale.scale == 1;
  if (!out.is_index) SK_TRY_INTO(out.rounding, rounding_of(scale.round_mode, "ofm_scale.round_mode"));
  SK_TRY(set_activation(registers.get<hw::ActivationU85>(), output, out));
  return out;
}

// The operand without a scale is shifted left by as many bits as the other one before its scale.
OperandRule rule_u5x(hw::OperandScale mode, hw::OperandScale scaled_in, const hw::OpaScale& a, uint32_t own,
                     hw::Rounding rounding, uint32_t bits, const QuirkSet& quirks) {
  if (mode == hw::OperandScale::both_16) return {.factor = own & 0xFFFF};
  if (mode != scaled_in) return {.factor = int64_t{1} << (bits - 1)};
  const bool is_half = a.scale == 1U << 30 && a.shift + bits == 31;
  if (is_half && quirks.has(QuirkName::half_counts_as_one)) return {.factor = int64_t{1} << bits};
  return {.is_scaled = true, .scale = {a.scale, a.shift}, .rounding = rounding, .bits = bits};
}

int64_t constant_of(int64_t value, int64_t zero_point) { return value - zero_point; }

void resize(FeatureMap& map, const FeatureMap& output, bool height, bool width, bool depth) {
  map.height = height ? 1 : output.height;
  map.width = width ? 1 : output.width;
  map.depth = depth ? 1 : output.depth;
}

Result<Operands> operands_u5x(const Context& context, ElementwiseMode mode, const FeatureMap& output) {
  const Registers& registers = context.registers;
  Operands out;
  out.first.map = input_of(registers, context.chip);
  resize(out.first.map, output, false, false, false);
  if (!is_unary(mode)) {
    const auto broadcast = registers.get<hw::Ifm2Broadcast>();
    out.is_swapped = broadcast.swapped;
    out.second.is_constant = broadcast.constant;
    if (broadcast.constant) {
      const bool is_signed = registers.get<hw::Ifm2Precision>().is_signed;
      const uint32_t value = registers.get<hw::Ifm2Scalar>().value, zero = registers.get<hw::Ifm2ZeroPoint>().value;
      out.second.constant =
          is_signed ? constant_of(static_cast<int16_t>(value), static_cast<int16_t>(zero)) : constant_of(value, zero);
    } else {
      out.second.map = input2_of(registers, context.chip);
      resize(out.second.map, output, broadcast.height, broadcast.width, broadcast.depth);
    }
  }
  if (mode != ElementwiseMode::add && mode != ElementwiseMode::sub) return out;
  const auto precision = registers.get<hw::IfmPrecision>();
  if (precision.scale_mode > hw::OperandScale::b_32 || precision.round_mode > hw::Rounding::natural)
    return error(ErrorCode::fault, "ifm_precision: scale_mode {}, round_mode {} are unknown",
                 static_cast<int>(precision.scale_mode), static_cast<int>(precision.round_mode));
  const auto a = registers.get<hw::OpaScale>();
  const uint32_t b = precision.scale_mode == hw::OperandScale::both_16 ? registers.get<hw::OpbScale>().scale : 0;
  const uint32_t bits = out.first.map.precision == hw::Precision::bits_16 ? 15 : 20;
  OperandRule of_a =
      rule_u5x(precision.scale_mode, hw::OperandScale::a_32, a, a.scale, precision.round_mode, bits, context.quirks);
  OperandRule of_b =
      rule_u5x(precision.scale_mode, hw::OperandScale::b_32, a, b, precision.round_mode, bits, context.quirks);
  if (out.is_swapped) std::swap(of_a, of_b);
  out.first.rule = of_a, out.second.rule = of_b;
  return out;
}

template <typename ScaleOf>
Result<OperandRule> rule_u85(const Registers& registers, std::string_view field) {
  const auto scale = registers.get<ScaleOf>();
  OperandRule out{.is_scaled = true, .scale = {scale.scale, scale.shift}, .bits = scale.double_round};
  SK_TRY_ASSIGN(out.rounding, rounding_of(scale.round_mode, field));
  if (out.bits > 30) return not_modelled("double_round of an operand", out.bits);
  return out;
}

template <typename Broadcast, typename Precision>
Result<void> set_map(Operand& operand, const Registers& registers, const FeatureMap& output) {
  const auto broadcast = registers.get<Broadcast>();
  const hw::Storage storage = registers.get<Precision>().storage;
  operand.is_constant = broadcast.scalar || storage == hw::Storage::none;
  if (operand.is_constant) {
    const auto value = static_cast<int32_t>(registers.get<hw::OpScalar>().value);
    operand.constant = constant_of(value, operand.map.zero_point);
    return {};
  }
  resize(operand.map, output, broadcast.height, broadcast.width, broadcast.depth);
  return {};
}

Result<Operands> operands_u85(const Context& context, ElementwiseMode mode, const FeatureMap& output) {
  const Registers& registers = context.registers;
  Operands out;
  out.first.map = input_of(registers, context.chip);
  SK_TRY((set_map<hw::IfmBroadcast, hw::IfmPrecisionU85>(out.first, registers, output)));
  SK_TRY_ASSIGN(out.first.rule, rule_u85<hw::IfmScale>(registers, "ifm_scale.round_mode"));
  if (!is_unary(mode) || mode == ElementwiseMode::lrelu)
    SK_TRY_INTO(out.second.rule, rule_u85<hw::Ifm2Scale>(registers, "ifm2_scale.round_mode"));
  if (is_unary(mode)) return out;
  out.second.map = input2_of(registers, context.chip);
  SK_TRY((set_map<hw::Ifm2BroadcastU85, hw::Ifm2PrecisionU85>(out.second, registers, output)));
  return out;
}

}  // namespace

bool is_unary(ElementwiseMode mode) {
  return mode == ElementwiseMode::lrelu || mode == ElementwiseMode::abs || mode == ElementwiseMode::clz;
}

Result<OutputRules> output_rules(const Context& context, const FeatureMap& output) {
  return context.chip.generation() == hw::Generation::u85 ? rules_u85(context.registers, output)
                                                          : rules_u5x(context.registers, output);
}

Result<Operands> operands_of(const Context& context, ElementwiseMode mode, const FeatureMap& output) {
  return context.chip.generation() == hw::Generation::u85 ? operands_u85(context, mode, output)
                                                          : operands_u5x(context, mode, output);
}

}  // namespace skillet::sim::ethosu
