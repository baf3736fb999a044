// SOFTMAX in 32-bit operations (hardware specification, section 4.13): the steps of the CPU kernel, each for all rows
// at once. For int16 there are two tables, for exp() and for the reciprocal of a sum.
#include "graph/ref/softmax.h"

#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "graph/ref/range.h"
#include "npu/driver.h"
#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

using npu::Remedy;
using npu::Support;

constexpr int kDiffBits = 26,
              kSumShift = 12;  // fraction bits of a difference; right shift of exponentials before they are summed
constexpr int64_t kRowsMax = 65535, kDepthMax = 4095;  // larger sums might overflow 32 bits
constexpr uint32_t kWordBytes = 4;
constexpr int kWideLeftMax = 14;  // differences of int16 have 17 bits

// exp of the difference i - 255 to the row's maximum, Q31. TensorFlow Lite's kernel ignores exponentials smaller than a
// step.
Table exponentials(double scale) {
  const auto by = quantize_multiplier(std::min(scale * (1 << kDiffBits), static_cast<double>(INT32_MAX)));
  const double least = -std::floor(31.0 * (1 << kDiffBits) / std::ldexp(1.0, by.shift));
  Table out(256 * size_t{kWordBytes});
  for (int32_t i = 0; i < 256; ++i) {
    const int32_t diff = i - 255;
    const int32_t value = diff < least ? 0 : ref::exp_on_negative_values(multiply_by_quantized_multiplier(diff, by));
    store_le(out.data() + size_t{kWordBytes} * static_cast<size_t>(i), value);
  }
  return out;
}

Table lines_of(const ref::Int16Table& function) {
  const auto steps = function.steps();
  Table out((steps.size() - 1) * size_t{kWordBytes});
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    store_le(&out[i * kWordBytes], steps[i]);
    store_le(&out[i * kWordBytes + 2], static_cast<int16_t>(steps[i + 1] - steps[i]));
  }
  return out;
}

class Maker {
 public:
  Maker(const ir::Graph& graph, ir::OpId id) : graph_(graph), id_(id), op_(graph.op(id)) {
    const ir::Tensor& input = graph.tensor(op_.inputs[0]);
    depth_ = static_cast<uint32_t>(input.shape.back(0));
    rows_ = static_cast<uint32_t>(input.shape.elems() / depth_);
    is_signed_ = input.dtype != ir::DType::uint8, is_wide_ = input.dtype == ir::DType::int16;
  }

  Lowered run(float beta) {
    const ir::Tensor& tensor = graph_.tensor(op_.inputs[0]);
    const Map input = values(op_.inputs[0], depth_), largest = add_largest(input);
    const Map e = exponential(input, largest, exponentials(static_cast<double>(beta) * tensor.quant.scale()));
    const Map sum = words(1);
    add({.unit = Unit::reduce_sum, .input = with(Unit::shr, e, kSumShift, depth_), .output = sum});
    // Writes the sum as 2^-h * (1 + d), with d in Q31. Newton's method finds the reciprocal of half of 1 + d.
    const Map headroom = words(1);
    add({.unit = Unit::clz, .input = sum, .output = headroom});
    const Map right = from(Unit::sub, 35, headroom);
    const Map one_and_d = both(Unit::shl, sum, with(Unit::sub, headroom, 1));
    const Map d = with(Unit::shl, with(Unit::sub, one_and_d, 1 << 30), 1);
    const Map half = with(Unit::add, d, INT32_MAX, 1, {.scale = 1, .shift = 1});
    Map x = with(Unit::add, with(Unit::mul, half, -1010580540, 1, kHigh), 1515870810);
    for (int i = 0; i < 3; ++i) {
      const Map rest = from(Unit::sub, 1 << 29, both(Unit::mul, half, x, kHigh));
      x = both(Unit::add, x, with(Unit::mul, both(Unit::mul, x, rest, kHigh), 4));
    }
    // Twice the reciprocal may exceed 32 bits by one step, so the product is doubled instead.
    const Map scaled = both(Unit::mul, e, x, {.scale = kHigh.scale, .shift = kHigh.shift - 1});
    Map output = values(op_.outputs[0], depth_);
    const ref::Range limits = ref::type_range(tensor.dtype);
    output.zero_point = limits.min;
    add({.unit = Unit::shr,
         .input = scaled,
         .input2 = right,
         .output = output,
         .least = limits.min,
         .most = limits.max});
    return take();
  }

  Lowered run(const ref::Int16Softmax& softmax) {
    const Map input = values(op_.inputs[0], depth_), largest = add_largest(input);
    const Map diff = words(depth_), e = wide(depth_);
    add({.unit = Unit::sub, .input = input, .input2 = largest, .output = diff});
    const Scale by = scale_of(softmax.input);
    const Map scaled = with(Unit::mul, diff, static_cast<int32_t>(by.scale), depth_, {.scale = 1, .shift = by.shift});
    operations_.back().rounding = hw::Rounding::twice;
    add_looked_up(Unit::add, scaled, INT16_MAX, e, softmax.exp);
    const Map sum = words(1), headroom = words(1);
    add({.unit = Unit::reduce_sum, .input = e, .output = sum});
    add({.unit = Unit::clz, .input = sum, .output = headroom});
    // Writes the sum as 2^right * (1 + rest), with the rest in 16 bits.
    const Map right = from(Unit::sub, 31, headroom);
    const Map above = both(Unit::sub, sum, from(Unit::shl, 1, right));
    const Map rest = with(Unit::shr, both(Unit::shl, above, headroom), 15);
    const Map reciprocal = wide(1);
    add_looked_up(Unit::sub, rest, -INT16_MIN, reciprocal, softmax.reciprocal);
    const Map product = both(Unit::mul, e, reciprocal);
    add({.unit = Unit::shr,
         .input = product,
         .input2 = right,
         .output = values(op_.outputs[0], depth_),
         .least = 0,
         .most = INT16_MAX});
    return take();
  }

 private:
  static constexpr Scale kHigh = {.scale = 1U << 30, .shift = 31};  // the upper half of a product

  ir::TensorId scratch(uint64_t bytes) {
    scratch_bytes_.push_back(bytes);
    return static_cast<ir::TensorId>(graph_.tensors.size() + scratch_bytes_.size() - 1);
  }
  Lowered take() {
    Lowered made(std::move(operations_));
    made.scratch_bytes = std::move(scratch_bytes_);
    return made;
  }
  // A map with the input's type.
  Map values(ir::TensorId id, uint32_t depth) const {
    const uint64_t bytes = is_wide_ ? 2 : 1;
    return {.tensor = id,
            .width = rows_,
            .depth = depth,
            .stride_y = rows_ * depth * bytes,
            .stride_x = depth * bytes,
            .is_signed = is_signed_,
            .precision = is_wide_ ? hw::Precision::bits_16 : hw::Precision::bits_8};
  }
  Map wide(uint32_t depth) { return values(scratch(uint64_t{rows_} * depth * 2), depth); }
  Map words(uint32_t depth) {
    const uint64_t row = uint64_t{depth} * kWordBytes;
    return {.tensor = scratch(rows_ * row),
            .width = rows_,
            .depth = depth,
            .stride_y = rows_ * row,
            .stride_x = row,
            .is_signed = true,
            .precision = hw::Precision::bits_32};
  }

  void add(Operation one) {
    one.op = id_;
    one.rounding = hw::Rounding::natural;
    if (one.output.precision == hw::Precision::bits_32 && !one.table) one.least = INT16_MIN, one.most = INT16_MAX;
    operations_.push_back(std::move(one));
  }
  // Columns become channels, and a window covers all of them.
  Map add_largest(const Map& input) {
    const uint32_t bytes = input.elem_bytes();
    const Map largest = values(scratch(uint64_t{rows_} * bytes), 1);
    Operation one{.unit = Unit::max_pool, .input = input, .output = largest, .window = {.kernel_w = depth_}};
    one.input.height = rows_, one.input.width = depth_, one.input.depth = 1;
    one.input.stride_y = uint64_t{depth_} * bytes, one.input.stride_x = bytes;
    one.output.height = rows_, one.output.width = 1, one.output.stride_y = bytes;
    set_type_range(graph_.tensor(op_.inputs[0]), one);
    add(std::move(one));
    return largest;
  }
  // Combines a word and a constant, then looks the result up in a table, as int16.
  void add_looked_up(Unit unit, const Map& input, int32_t value, const Map& output, const ref::Int16Table& function) {
    add({.unit = unit,
         .input = input,
         .input2 = constant(),
         .output = output,
         .least = INT16_MIN,
         .most = INT16_MAX,
         .table = lines_of(function),
         .constant = value});
  }
  // Differences are -255 to 0; the index of the table is int8.
  Map exponential(const Map& input, const Map& largest, Table table) {
    Map out = words(depth_);
    out.zero_point = INT8_MAX;
    add({.unit = Unit::sub,
         .input = input,
         .input2 = largest,
         .output = out,
         .least = INT8_MIN,
         .most = INT8_MAX,
         .table = std::move(table)});
    out.zero_point = 0;
    return out;
  }
  // Combines with a constant; for each row, or for `depth` channels.
  Map with(Unit unit, const Map& input, int32_t value, uint32_t depth = 1, Scale scale = {}) {
    const Map out = words(depth);
    add({.unit = unit, .input = input, .input2 = constant(), .output = out, .scale = scale, .constant = value});
    return out;
  }
  Map from(Unit unit, int32_t value, const Map& input) {
    const Map out = words(1);
    add({.unit = unit, .input = input, .input2 = constant(), .output = out, .is_swapped = true, .constant = value});
    return out;
  }
  // The second operand may have one channel for all channels of the first.
  Map both(Unit unit, const Map& input, const Map& input2, Scale scale = {}) {
    const Map out = words(input.depth);
    add({.unit = unit, .input = input, .input2 = input2, .output = out, .scale = scale});
    return out;
  }
  static Map constant() {
    return {.stride_y = kWordBytes, .stride_x = kWordBytes, .is_signed = true, .precision = hw::Precision::bits_32};
  }

  const ir::Graph& graph_;
  ir::OpId id_;
  const ir::Op& op_;
  uint32_t depth_ = 1, rows_ = 1;
  bool is_signed_ = false, is_wide_ = false;
  std::vector<Operation> operations_;
  std::vector<uint64_t> scratch_bytes_;
};

}  // namespace

Lowered lower_softmax(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &input = graph.tensor(op.inputs[0]), &output = graph.tensor(op.outputs[0]);
  for (const ir::Tensor* tensor : {&input, &output})
    if (Support one = is_activation(*tensor); !one.ok) return one;
  if (input.dtype != output.dtype)
    return Support::no(Remedy::one_type, "{} becomes {}; Skillet keeps the type", ir::dtype_name(input.dtype),
                       ir::dtype_name(output.dtype));
  const int64_t depth = input.shape.back(0), rows = input.shape.elems() / depth;
  if (depth > kDepthMax || rows > kRowsMax)
    return Support::no(Remedy::split, "{} rows of {} values; the chip takes {} of {}", rows, depth, kRowsMax,
                       kDepthMax);
  const float beta = op.as<ir::SoftmaxAttrs>().beta;
  if (input.dtype == ir::DType::int16) {
    if (!(beta > 0)) return Support::no(Remedy::range, "beta {}", beta);
    const ref::Int16Softmax softmax(beta, input.quant.scale());
    if (softmax.input.shift > kWideLeftMax)
      return Support::no(Remedy::range, "beta * input scale is {}", beta * input.quant.scale());
    return Maker(graph, id).run(softmax);
  }
  if (!(static_cast<double>(beta) * input.quant.scale() * (1 << kDiffBits) > 1))
    return Support::no(Remedy::range, "beta * input scale is {}", static_cast<double>(beta) * input.quant.scale());
  return Maker(graph, id).run(beta);
}

}  // namespace skillet::npus::ethosu
