// Units with random scales, zero points and shapes on each simulated chip: their outputs are within one step of what
// ONNX computes in float, or they are left to the host with a reason.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "frontend/onnx/capability.h"
#include "frontend/onnx/testing/qdq_net.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"

namespace skillet::onnx {
namespace {

using ir::DType;
using Dims = std::vector<int64_t>;
using Reals = std::vector<double>;

int64_t product(const Dims& dims) {
  int64_t all = 1;
  for (const int64_t dim : dims) all *= dim;
  return all;
}

// Floats of the host: value, sizes and contents.
struct Floats {
  int value = kNone;
  Dims dims;
  Reals reals;
};

struct Output {
  int value = kNone;
  ir::Quant quant;
  Reals reals;
};

// A model of one unit, with its inputs and its float results.
class Drawn {
 public:
  Drawn(DType type, uint32_t seed) : net_(type), type_(type), random_(seed) {}

  int below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }
  int within(int low, int high) { return low + below(high - low + 1); }
  double real(double low, double high) { return low + (high - low) * (random_() / 4294967296.0); }
  bool chance() { return below(2) != 0; }

  Floats input(const Dims& dims) { return input(dims, quant(std::exp2(real(-8, 1)))); }
  Floats input(const Dims& dims, const ir::Quant& quant) {
    inputs.push_back(net_.value(type_, dims));
    bytes.push_back(some_bytes(product(dims)));
    return {net_.dequantized(inputs.back(), quant), dims, reals_of(bytes.back(), type_, quant)};
  }
  // A constant. If its type differs from the unit's, it is weights.
  Floats constant(const Dims& dims, DType type, const ir::Quant& quant) {
    const Bytes stored = some_bytes(product(dims));
    return {net_.dequantized(net_.constant(type, dims, stored), quant), dims, reals_of(stored, type, quant)};
  }
  int list(const std::vector<int64_t>& values) { return net_.list(DType::int64, values); }
  int floats(const std::vector<float>& values) { return net_.list(DType::float32, values); }
  ir::Quant quant(double scale) { return {{static_cast<float>(scale)}, {least() + below(256)}}; }

  // Quantizes the output with steps from a hundredth to eight times what its range needs.
  void output(int value, Reals reals) {
    double most = 1e-6;
    for (const double one : reals) most = std::max(most, std::abs(one));
    output(value, std::move(reals), quant(most / 128 * std::exp2(real(-7, 3))));
  }
  void output(int value, Reals reals, const ir::Quant& quant) {
    const int made = net_.quantized(value, quant);
    net_.model.values[static_cast<size_t>(made)].is_output = true;
    outputs.push_back({made, quant, std::move(reals)});
  }
  Node& node(const char* op, const std::vector<int>& from, const std::vector<Dims>& to) {
    std::vector<int> made;
    for (const Dims& dims : to) made.push_back(net_.value(DType::float32, dims));
    return net_.node(op, from, made);
  }

  const Model& model() const { return net_.model; }
  DType type() const { return type_; }
  int least() const { return type_ == DType::int8 ? -128 : 0; }
  std::vector<int> inputs;  // indices of values
  std::vector<Bytes> bytes;
  std::vector<Output> outputs;

 private:
  Bytes some_bytes(int64_t count) {
    Bytes out(static_cast<size_t>(count));
    for (uint8_t& one : out) one = static_cast<uint8_t>(random_());
    return out;
  }
  static Reals reals_of(const Bytes& bytes, DType type, const ir::Quant& quant) {
    Reals out;
    for (const uint8_t byte : bytes) {
      const int stored = type == DType::int8 ? static_cast<int8_t>(byte) : byte;
      out.push_back(static_cast<double>(quant.scale()) * (stored - quant.zero_point()));
    }
    return out;
  }

  QdqNet net_;
  const DType type_;
  std::mt19937 random_;
};

Dims some_image(Drawn& d) { return {1, d.within(1, 20), d.within(3, 12), d.within(3, 12)}; }

// Applies `of` to the reals in each window, without padding.
void pooled(Drawn& d, const char* op, const std::function<double(const Reals&)>& of) {
  const Dims dims = some_image(d);
  const int64_t kernel = d.within(1, 3), stride = d.within(1, 2), pad = d.below(static_cast<int>(kernel + 1) / 2);
  const Floats x = d.input(dims);
  const auto count = [&](int64_t size) { return (size + 2 * pad - kernel) / stride + 1; };
  const Dims to = {1, dims[1], count(dims[2]), count(dims[3])};
  Reals reals;
  for (int64_t at = 0; at < product(to); ++at) {
    const int64_t left = at % to[3] * stride - pad, top = at / to[3] % to[2] * stride - pad,
                  channel = at / to[3] / to[2];
    Reals window;
    for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
      const int64_t row = top + tap / kernel, column = left + tap % kernel;
      if (row < 0 || row >= dims[2] || column < 0 || column >= dims[3]) continue;
      window.push_back(x.reals[static_cast<size_t>((channel * dims[2] + row) * dims[3] + column)]);
    }
    reals.push_back(of(window));
  }
  Node& node = d.node(op, {x.value}, {to});
  node.attributes["kernel_shape"].ints = {kernel, kernel};
  node.attributes["strides"].ints = {stride, stride};
  node.attributes["pads"].ints = {pad, pad, pad, pad};
  d.output(node.outputs[0], reals);
}
double mean_of(const Reals& all) {
  double sum = 0;
  for (const double one : all) sum += one;
  return sum / static_cast<double>(all.size());
}
void average_pool(Drawn& d) { pooled(d, "AveragePool", mean_of); }
void max_pool(Drawn& d) {
  pooled(d, "MaxPool", [](const Reals& all) { return *std::ranges::max_element(all); });
}

void global_average(Drawn& d) {
  const Floats x = d.input(some_image(d));
  const int64_t size = x.dims[2] * x.dims[3];
  Reals reals;
  for (int64_t c = 0; c < x.dims[1]; ++c)
    reals.push_back(mean_of({x.reals.begin() + c * size, x.reals.begin() + (c + 1) * size}));
  d.output(d.node("GlobalAveragePool", {x.value}, {{1, x.dims[1], 1, 1}}).outputs[0], reals);
}

void concat(Drawn& d) {
  Dims dims = some_image(d), other = dims;
  other[1] = d.within(1, 12);
  const Floats x = d.input(dims), y = d.input(other);
  Reals reals = x.reals;
  reals.insert(reals.end(), y.reals.begin(), y.reals.end());
  dims[1] += other[1];
  Node& node = d.node("Concat", {x.value, y.value}, {dims});
  node.attributes["axis"].ints = {1};
  d.output(node.outputs[0], reals);
}

void split(Drawn& d) {
  Dims dims = some_image(d);
  dims[1] = dims[1] + 1;
  const int64_t first = d.within(1, static_cast<int>(dims[1]) - 1), size = dims[2] * dims[3];
  const Floats x = d.input(dims);
  Dims one = dims, two = dims;
  one[1] = first, two[1] = dims[1] - first;
  Node& node = d.node("Split", {x.value, d.list({one[1], two[1]})}, {one, two});
  node.attributes["axis"].ints = {1};
  const std::vector<int> outputs = node.outputs;  // a copy, because `node` moves
  d.output(outputs[0], {x.reals.begin(), x.reals.begin() + first * size});
  d.output(outputs[1], {x.reals.begin() + first * size, x.reals.end()});
}

// The second operand is computed with the same shape, or a constant per channel, or a scalar.
void binary(Drawn& d, const char* op, const std::function<double(double, double)>& of, bool same_scale = false) {
  const Dims dims = some_image(d);
  const ir::Quant quant = d.quant(std::exp2(d.real(-8, 1)));
  const Floats x = d.input(dims, quant);
  const int kind = d.below(3);
  const ir::Quant other = same_scale ? quant : d.quant(quant.scale() * std::exp2(d.real(-5, 5)));
  const Floats y = kind == 0   ? d.input(dims, other)
                   : kind == 1 ? d.constant({1, dims[1], 1, 1}, d.type(), other)
                               : d.constant({1, 1, 1, 1}, d.type(), other);
  Reals reals;
  const int64_t size = dims[2] * dims[3];
  for (int64_t i = 0; i < product(dims); ++i)
    reals.push_back(of(x.reals[static_cast<size_t>(i)], y.reals[static_cast<size_t>(kind == 0   ? i
                                                                                    : kind == 1 ? i / size
                                                                                                : 0)]));
  d.output(d.node(op, {x.value, y.value}, {dims}).outputs[0], reals);
}
void add(Drawn& d) { binary(d, "Add", std::plus<>()); }
void sub(Drawn& d) { binary(d, "Sub", std::minus<>()); }
void mul(Drawn& d) { binary(d, "Mul", std::multiplies<>()); }
void max(Drawn& d) {
  binary(
      d, "Max", [](double a, double b) { return std::max(a, b); }, true);
}
void min(Drawn& d) {
  binary(
      d, "Min", [](double a, double b) { return std::min(a, b); }, true);
}

void gemm(Drawn& d) {
  const int64_t depth = d.within(1, 40), channels = d.within(1, 20);
  const Floats x = d.input({1, depth});
  const DType type = d.chance() ? DType::int8 : d.type();
  const ir::Quant by{{static_cast<float>(std::exp2(d.real(-9, -4)))}, {type == DType::int8 ? 0 : d.within(100, 156)}};
  const Floats w = d.constant({channels, depth}, type, by);
  Reals reals(static_cast<size_t>(channels), 0);
  for (int64_t i = 0; i < channels * depth; ++i)
    reals[static_cast<size_t>(i / depth)] += w.reals[static_cast<size_t>(i)] * x.reals[static_cast<size_t>(i % depth)];
  Node& node = d.node("Gemm", {x.value, w.value}, {{1, channels}});
  node.attributes["transB"].ints = {1};
  d.output(node.outputs[0], reals);
}

void conv(Drawn& d) {
  const Dims dims = some_image(d);
  const bool is_depthwise = d.chance();
  const int64_t in = is_depthwise ? 1 : dims[1], channels = is_depthwise ? dims[1] : d.within(1, 16),
                kernel = d.within(1, 3);
  const Floats x = d.input(dims);
  const Floats w =
      d.constant({channels, in, kernel, kernel}, DType::int8, {{static_cast<float>(std::exp2(d.real(-9, -4)))}, {0}});
  const Dims to = {1, channels, dims[2] - kernel + 1, dims[3] - kernel + 1};
  Reals reals;
  for (int64_t at = 0; at < product(to); ++at) {
    const int64_t column = at % to[3], row = at / to[3] % to[2], channel = at / to[3] / to[2];
    double sum = 0;
    for (int64_t tap = 0; tap < in * kernel * kernel; ++tap) {
      const int64_t from = is_depthwise ? channel : tap / (kernel * kernel), y = row + tap / kernel % kernel;
      sum += w.reals[static_cast<size_t>(channel * in * kernel * kernel + tap)] *
             x.reals[static_cast<size_t>((from * dims[2] + y) * dims[3] + column + tap % kernel)];
    }
    reals.push_back(sum);
  }
  Node& node = d.node("Conv", {x.value, w.value}, {to});
  node.attributes["group"].ints = {is_depthwise ? dims[1] : 1};
  d.output(node.outputs[0], reals);
}

// Operations that only move values: the reals in the order of the output.
void reshaped(Drawn& d) {
  const Floats x = d.input(some_image(d));
  d.output(d.node("Flatten", {x.value}, {{1, product(x.dims)}}).outputs[0], x.reals);
}
void sliced(Drawn& d) {
  const Floats x = d.input(some_image(d));
  const int64_t rows = x.dims[2] - 1;
  Reals reals;
  for (int64_t i = 0; i < product(x.dims); ++i) {
    if (i / x.dims[3] % x.dims[2] != 0) reals.push_back(x.reals[static_cast<size_t>(i)]);
  }
  const int begin = d.list({1}), end = d.list({rows + 1}), axis = d.list({2});
  d.output(d.node("Slice", {x.value, begin, end, axis}, {{1, x.dims[1], rows, x.dims[3]}}).outputs[0], reals);
}
void transposed(Drawn& d) {
  const Floats x = d.input(some_image(d));
  const Dims& from = x.dims;
  Reals reals;
  for (int64_t w = 0; w < from[3]; ++w)
    for (int64_t c = 0; c < from[1]; ++c)
      for (int64_t h = 0; h < from[2]; ++h)
        reals.push_back(x.reals[static_cast<size_t>((c * from[2] + h) * from[3] + w)]);
  Node& node = d.node("Transpose", {x.value}, {{1, from[3], from[1], from[2]}});
  node.attributes["perm"].ints = {0, 3, 1, 2};
  d.output(node.outputs[0], reals);
}
void padded(Drawn& d) {
  const Floats x = d.input(some_image(d));
  const Dims to = {1, x.dims[1], x.dims[2] + 2, x.dims[3] + 1};
  Reals reals;
  for (int64_t at = 0; at < product(to); ++at) {
    const int64_t column = at % to[3] - 1, row = at / to[3] % to[2] - 1, channel = at / to[3] / to[2];
    const bool is_edge = column < 0 || row < 0 || row >= x.dims[2];
    reals.push_back(is_edge ? 0 : x.reals[static_cast<size_t>((channel * x.dims[2] + row) * x.dims[3] + column)]);
  }
  d.output(d.node("Pad", {x.value, d.list({0, 0, 1, 1, 0, 0, 1, 0})}, {to}).outputs[0], reals);
}
void resized(Drawn& d) {
  const Floats x = d.input(some_image(d));
  const Dims to = {1, x.dims[1], x.dims[2] * 2, x.dims[3] * 2};
  Reals reals;
  for (int64_t at = 0; at < product(to); ++at) {
    const int64_t column = at % to[3] / 2, row = at / to[3] % to[2] / 2, channel = at / to[3] / to[2];
    reals.push_back(x.reals[static_cast<size_t>((channel * x.dims[2] + row) * x.dims[3] + column)]);
  }
  Node& node = d.node("Resize", {x.value, kNone, d.floats({1, 1, 2, 2})}, {to});
  node.attributes["mode"].text = "nearest";
  node.attributes["coordinate_transformation_mode"].text = "asymmetric";
  node.attributes["nearest_mode"].text = "floor";
  d.output(node.outputs[0], reals);
}

void element_by_element(Drawn& d, const char* op, const std::function<double(double)>& of) {
  const Floats x = d.input(some_image(d), d.quant(std::exp2(d.real(-8, -4))));
  Reals reals;
  for (const double one : x.reals) reals.push_back(of(one));
  d.output(d.node(op, {x.value}, {x.dims}).outputs[0], reals);
}
void sigmoid(Drawn& d) {
  element_by_element(d, "Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); });
}
void relu(Drawn& d) {
  element_by_element(d, "Relu", [](double x) { return std::max(x, 0.0); });
}

struct Kind {
  const char* name;
  void (*draw)(Drawn&);
  int most = 1;  // allowed steps of difference; Vivante chips add with weights of 8 bits (npu::steps_off())
};
constexpr std::array kKinds = {Kind{"AveragePool", average_pool},
                               Kind{"MaxPool", max_pool},
                               Kind{"GlobalAveragePool", global_average},
                               Kind{"Concat", concat},
                               Kind{"Split", split},
                               Kind{"Add", add, 2},
                               Kind{"Sub", sub, 2},
                               Kind{"Mul", mul},
                               Kind{"Max", max},
                               Kind{"Min", min},
                               Kind{"Gemm", gemm},
                               Kind{"Conv", conv},
                               Kind{"Flatten", reshaped},
                               Kind{"Slice", sliced},
                               Kind{"Transpose", transposed},
                               Kind{"Pad", padded},
                               Kind{"Resize", resized},
                               Kind{"Sigmoid", sigmoid},
                               Kind{"Relu", relu}};

int stored(DType type, uint8_t byte) { return type == DType::int8 ? static_cast<int8_t>(byte) : byte; }

// Largest difference in steps.
int steps_off(const Drawn& drawn, const Output& output, const Bytes& got) {
  int most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double right =
        std::nearbyint(output.reals[i] / static_cast<double>(output.quant.scale())) + output.quant.zero_point();
    const double kept = std::clamp<double>(right, drawn.least(), drawn.least() + 255);
    most = std::max(most, std::abs(stored(drawn.type(), got[i]) - static_cast<int>(kept)));
  }
  return most;
}

// Outputs of the part, in the order of `drawn.outputs`.
std::vector<Bytes> run(const Drawn& drawn, Part& part) {
  std::vector<std::span<const uint8_t>> inputs;
  for (const Port& port : part.inputs()) {
    for (size_t i = 0; i < drawn.inputs.size(); ++i)
      if (drawn.model().value(drawn.inputs[i]).name == port.name) inputs.emplace_back(drawn.bytes[i]);
  }
  std::vector<Bytes> outputs;
  for (const Output& one : drawn.outputs) outputs.emplace_back(one.reals.size());
  std::vector<void*> to;
  for (const Port& port : part.outputs()) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (drawn.model().value(drawn.outputs[i].value).name == port.name) to.push_back(outputs[i].data());
  }
  const auto done = part.run(inputs, to);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
  return outputs;
}

std::string said_of(const Drawn& drawn) {
  std::string out;
  for (const Node& node : drawn.model().nodes) {
    if (node.op == "DequantizeLinear")
      out += fmt::format("steps of {:g} ", numbers(drawn.model().value(node.inputs[1]))->front());
  }
  for (const Node& node : drawn.model().nodes) out += node.op + " ";
  for (const Output& one : drawn.outputs) out += fmt::format("to steps of {:g} ", one.quant.scale());
  return out + std::string(ir::dtype_name(drawn.type()));
}

// True for chips that Skillet compiles for. For others, such as the Ethos-U85, it only runs programs of vendors'
// compilers.
bool compiles_for(const npu::Driver& driver, const npu::Chip& chip) {
  const auto graph = ir::parse(R"(graph "g"
tensor 0 "in" uint8 1x4x4x8 scale=0.5 zero=128
tensor 1 "filter" uint8 8x1x1x8 scale=0.02 zero=128 const=random:1
tensor 2 "bias" int32 8 scale=0.01 zero=0 const=random:2
tensor 3 "out" uint8 1x4x4x8 scale=0.5 zero=128
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] padding=same
)");
  return driver.supports(chip, graph.value(), 0).remedy != npu::Remedy::vendor_compiler;
}

std::vector<std::string> chips() {
  std::vector<std::string> out;
  for (const npu::Driver* driver : npu::drivers())
    for (const npu::Chip& chip : driver->chips())
      if (runtime::open_target("sim:" + chip.name).ok() && compiles_for(*driver, chip)) out.push_back(chip.name);
  return out;
}

constexpr uint32_t kRounds = 6;
constexpr uint32_t kFirst =
    42;  // among these are such that a chip alone has off by steps; others: --gtest_random_seed=N

class RandomUnits : public testing::TestWithParam<std::string> {};

TEST_P(RandomUnits, AreAtMostOneStepOffOrLeft) {
  const auto target = runtime::open_target("sim:" + GetParam());
  ASSERT_TRUE(target.ok()) << target.error().message;
  host::Options options;
  options.session.partition = compile::PartitionBy::all;
  options.session.compile.unproven = npu::Unproven::take;
  const uint32_t first = kFirst + static_cast<uint32_t>(GTEST_FLAG_GET(random_seed)) * kRounds;
  size_t taken = 0;
  for (const Kind& kind : kKinds) {
    for (uint32_t seed = first; seed < first + kRounds; ++seed) {
      Drawn drawn(seed % 2 == 0 ? DType::uint8 : DType::int8, seed * 7919 + 1);
      kind.draw(drawn);
      const auto made = capability_of(drawn.model(), *target, options);
      ASSERT_TRUE(made.ok()) << made.error().message;
      if (made->parts.empty()) {
        EXPECT_FALSE(made->told.refusals.empty()) << said_of(drawn);
        continue;
      }
      ++taken;
      const std::vector<Bytes> got = run(drawn, *made->parts[0]);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_LE(steps_off(drawn, drawn.outputs[i], got[i]), kind.most)
            << kind.name << " seed " << seed << ": " << said_of(drawn);
    }
  }
  if (GetParam() != "toy") {  // the toy chip takes none of them
    EXPECT_GT(taken, kRounds * kKinds.size() / 2) << "they say nothing of this chip";
  }
}

INSTANTIATE_TEST_SUITE_P(Onnx, RandomUnits, testing::ValuesIn(chips()), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace skillet::onnx
