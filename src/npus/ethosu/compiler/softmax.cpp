// SOFTMAX in operations of 32 bits (hardware specification, section 4.13): the steps of the CPU's kernel, each for all
// rows at once.
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
              kSumShift = 12;  // fractions of a difference; by how much exponentials are smaller in sums
constexpr int64_t kRowsMax = 65535, kDepthMax = 4095;  // sums of more might leave 32 bits
constexpr uint32_t kWordBytes = 4;

// exp of the difference i - 255 to the row's maximum, Q31. TensorFlow Lite's kernel leaves out what is smaller than a
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

class Maker {
 public:
  Maker(const ir::Graph& graph, ir::OpId id) : graph_(graph), id_(id), op_(graph.op(id)) {
    const ir::Tensor& input = graph.tensor(op_.inputs[0]);
    depth_ = static_cast<uint32_t>(input.shape.back(0));
    rows_ = static_cast<uint32_t>(input.shape.elems() / depth_);
  }

  Lowered run(float beta) {
    const ir::Tensor& tensor = graph_.tensor(op_.inputs[0]);
    const bool is_signed = tensor.dtype == ir::DType::int8;
    Map input = bytes(op_.inputs[0], is_signed, depth_);
    const Map largest = bytes(scratch(rows_), is_signed, 1);
    add_largest(input, largest);
    const Map e = exponential(input, largest, exponentials(static_cast<double>(beta) * tensor.quant.scale()));
    const Map sum = words(1);
    add({.unit = Unit::reduce_sum, .input = with(Unit::shr, e, kSumShift, depth_), .output = sum});
    // The sum as 2^-h * (1 + d), with d in Q31; then half of 1 + d, of which Newton's method finds the reciprocal.
    const Map headroom = words(1);
    add({.unit = Unit::clz, .input = sum, .output = headroom});
    const Map right = from(35, headroom);
    const Map one_and_d = both(Unit::shl, sum, with(Unit::sub, headroom, 1));
    const Map d = with(Unit::shl, with(Unit::sub, one_and_d, 1 << 30), 1);
    const Map half = with(Unit::add, d, INT32_MAX, 1, {.scale = 1, .shift = 1});
    Map x = with(Unit::add, with(Unit::mul, half, -1010580540, 1, kHigh), 1515870810);
    for (int i = 0; i < 3; ++i) {
      const Map rest = from(1 << 29, both(Unit::mul, half, x, kHigh));
      x = both(Unit::add, x, with(Unit::mul, both(Unit::mul, x, rest, kHigh), 4));
    }
    // Twice the reciprocal may be one step too large for 32 bits: its double is taken from the product.
    const Map scaled = both(Unit::mul, e, x, {.scale = kHigh.scale, .shift = kHigh.shift - 1});
    Map output = bytes(op_.outputs[0], is_signed, depth_);
    const ref::Range limits = ref::type_range(tensor.dtype);
    output.zero_point = limits.min;
    add({.unit = Unit::shr,
         .input = scaled,
         .input2 = right,
         .output = output,
         .least = limits.min,
         .most = limits.max});
    Lowered made(std::move(operations_));
    made.scratch_bytes = std::move(scratch_bytes_);
    return made;
  }

 private:
  static constexpr Scale kHigh = {.scale = 1U << 30, .shift = 31};  // the upper half of a product

  ir::TensorId scratch(uint64_t bytes) {
    scratch_bytes_.push_back(bytes);
    return static_cast<ir::TensorId>(graph_.tensors.size() + scratch_bytes_.size() - 1);
  }
  Map bytes(ir::TensorId id, bool is_signed, uint32_t depth) const {
    return {.tensor = id,
            .width = rows_,
            .depth = depth,
            .stride_y = uint64_t{rows_} * depth,
            .stride_x = depth,
            .is_signed = is_signed};
  }
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
  // Columns are channels, of which a window takes all.
  void add_largest(const Map& input, const Map& largest) {
    Operation one{.unit = Unit::max_pool, .input = input, .output = largest, .window = {.kernel_w = depth_}};
    one.input.height = rows_, one.input.width = depth_, one.input.depth = 1;
    one.input.stride_y = depth_, one.input.stride_x = 1;
    one.output.height = rows_, one.output.width = 1, one.output.stride_y = 1;
    set_type_range(graph_.tensor(op_.inputs[0]), one);
    add(std::move(one));
  }
  // Differences are -255 to 0; the index of the table is of int8.
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
  // With a constant; of each row, or of `depth` channels.
  Map with(Unit unit, const Map& input, int32_t value, uint32_t depth = 1, Scale scale = {}) {
    const Map out = words(depth);
    add({.unit = unit, .input = input, .input2 = constant(), .output = out, .scale = scale, .constant = value});
    return out;
  }
  Map from(int32_t value, const Map& input) {
    const Map out = words(1);
    add({.unit = Unit::sub,
         .input = input,
         .input2 = constant(),
         .output = out,
         .is_swapped = true,
         .constant = value});
    return out;
  }
  // The second may have one channel for all of the first.
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
  std::vector<Operation> operations_;
  std::vector<uint64_t> scratch_bytes_;
};

}  // namespace

Lowered lower_softmax(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &input = graph.tensor(op.inputs[0]), &output = graph.tensor(op.outputs[0]);
  for (const ir::Tensor* tensor : {&input, &output})
    if (Support one = is_quantized(*tensor); !one.ok) return one;
  if (input.dtype != output.dtype)
    return Support::no(Remedy::one_type, "{} becomes {}; Skillet keeps the type", ir::dtype_name(input.dtype),
                       ir::dtype_name(output.dtype));
  const int64_t depth = input.shape.back(0), rows = input.shape.elems() / depth;
  if (depth > kDepthMax || rows > kRowsMax)
    return Support::no(Remedy::split, "{} rows of {} values; the chip takes {} of {}", rows, depth, kRowsMax,
                       kDepthMax);
  const float beta = op.as<ir::SoftmaxAttrs>().beta;
  if (!(static_cast<double>(beta) * input.quant.scale() * (1 << kDiffBits) > 1))
    return Support::no(Remedy::range, "beta * input scale is {}", static_cast<double>(beta) * input.quant.scale());
  return Maker(graph, id).run(beta);
}

}  // namespace skillet::npus::ethosu
