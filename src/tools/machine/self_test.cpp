#include "tools/machine/self_test.h"

#include <chrono>
#include <cstdlib>
#include <variant>

#include "graph/ir/graph.h"
#include "runtime/session.h"
#include "runtime/session_keys.h"

namespace skillet::tools {
namespace {

constexpr int32_t kSize = 8;
constexpr int kAllowedDifference = 1;

ir::Graph convolution() {
  ir::Graph graph("convolution");
  const auto add = [&](const char* name, ir::DType type, ir::Shape shape, float scale, int32_t zero_point) {
    ir::Tensor tensor{.name = name, .dtype = type, .shape = std::move(shape)};
    tensor.quant = {.scales = {scale}, .zero_points = {zero_point}};
    return graph.add_tensor(std::move(tensor));
  };
  const auto in = add("in", ir::DType::uint8, {1, kSize, kSize, 1}, 0.5F, 120);
  const auto filter = add("filter", ir::DType::uint8, {1, 2, 2, 1}, 0.25F, 128);
  const auto bias = add("bias", ir::DType::int32, {1}, 0.125F, 0);
  const auto out = add("out", ir::DType::uint8, {1, kSize - 1, kSize - 1, 1}, 2.0F, 100);
  ir::set_constant(graph.tensor(filter), {133, 119, 140, 126});
  ir::set_constant(graph.tensor(bias), {10, 1, 0, 0});
  ir::Op op{.kind = ir::OpKind::conv_2d,
            .attrs = ir::default_attrs(ir::OpKind::conv_2d),
            .inputs = {in, filter, bias},
            .outputs = {out}};
  std::get<ir::ConvAttrs>(op.attrs).padding = ir::Padding::valid;
  graph.add_op(std::move(op));
  graph.inputs = {in};
  graph.outputs = {out};
  return graph;
}

ir::Graph relu() {
  ir::Graph graph("RELU");
  for (const char* name : {"in", "out"}) {
    ir::Tensor tensor{.name = name, .dtype = ir::DType::uint8, .shape = {1, kSize, kSize, 1}};
    tensor.quant = {.scales = {0.5F}, .zero_points = {120}};
    graph.add_tensor(std::move(tensor));
  }
  graph.add_op({.kind = ir::OpKind::relu, .attrs = ir::default_attrs(ir::OpKind::relu), .inputs = {0}, .outputs = {1}});
  graph.inputs = {0};
  graph.outputs = {1};
  return graph;
}

// A convolution, for chips that take any convolution.
ir::Graph network(const runtime::Target& target) {
  ir::Graph graph = convolution();
  if (target.driver == nullptr || target.driver->supports(target.chip, graph, 0).ok) return graph;
  return relu();
}

Bytes picture() {
  Bytes bytes;
  for (int i = 0; i < kSize * kSize; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + 11));
  return bytes;
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Result<Bytes> run_on(const runtime::Target& target, const ir::Graph& graph, npu::Unproven unproven, SelfTest& report) {
  const auto start = std::chrono::steady_clock::now();
  runtime::SessionOptions options;
  options.allow_fallback = false;
  options.compile.unproven = unproven;
  SK_TRY_ASSIGN(const auto session, runtime::Session::create(graph, target, options));
  const compile::OpPlace& op = session->report().ops.at(0);
  if (target.driver != nullptr && !op.on_npu) {
    // If the device could not be tested, its own error is the reason.
    if (unproven == npu::Unproven::verify) SK_TRY(run_on(target, graph, npu::Unproven::take, report));
    return error(ErrorCode::unsupported, "the driver does not take a {} of this chip: {}", session->graph().name,
                 op.reason);
  }
  report.create_ms = ms_since(start);
  const Bytes input = picture();
  SK_TRY(session->set_input(0, input));
  const auto run_start = std::chrono::steady_clock::now();
  SK_TRY(session->run());
  report.run_ms = ms_since(run_start);
  SK_TRY_ASSIGN(const auto output, session->output(0));
  return Bytes(output.begin(), output.end());
}

}  // namespace

Result<SelfTest> self_test(const runtime::Target& target) {
  SelfTest report, unused;
  const ir::Graph graph = network(target);
  report.what = graph.name;
  const runtime::Target cpu{.name = "cpu", .chip = {}, .driver = nullptr, .context = {}};
  SK_TRY_ASSIGN(const Bytes expected, run_on(cpu, graph, npu::Unproven::refuse, unused));
  SK_TRY_ASSIGN(const Bytes computed, run_on(target, graph, runtime::unproven_of_environment(), report));
  for (size_t i = 0; i < expected.size(); ++i)
    report.largest_difference = std::max(report.largest_difference, std::abs(expected[i] - computed[i]));
  if (report.largest_difference > kAllowedDifference)
    return error(ErrorCode::device, "a {} gave results up to {} steps away from the CPU's", graph.name,
                 report.largest_difference);
  return report;
}

}  // namespace skillet::tools
