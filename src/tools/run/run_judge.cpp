#include "tools/run/run_judge.h"

#include <algorithm>

#include "base/log.h"
#include "base/stopwatch.h"
#include "graph/ref/ref.h"
#include "tools/run/scores.h"

namespace skillet::tools {

Result<Run> cpu_kernels(const ir::Graph& graph) {
  SK_TRY_ASSIGN(ref::Interpreter made, ref::Interpreter::create(graph));
  auto kernels = std::make_shared<ref::Interpreter>(std::move(made));
  return Run([&graph, kernels](const std::vector<Bytes>& inputs) -> Result<std::vector<Bytes>> {
    for (size_t i = 0; i < inputs.size(); ++i) std::ranges::copy(inputs[i], kernels->tensor(graph.inputs[i]).begin());
    SK_TRY(kernels->run().with_context("on the CPU kernels"));
    std::vector<Bytes> out;
    for (const ir::TensorId id : graph.outputs) {
      const auto bytes = kernels->tensor(id);
      out.emplace_back(bytes.begin(), bytes.end());
    }
    return out;
  });
}

Result<Reference> Reference::create(const ir::Graph& graph) {
  SK_TRY_ASSIGN(Run kernels, cpu_kernels(graph));
  SK_TRY_ASSIGN(Run with_noise, cpu_kernels(graph));
  return Reference(graph, std::move(kernels), std::move(with_noise));
}

Result<void> Reference::compare(const InputSet& inputs, const std::vector<Bytes>& outputs, Inference& inference,
                                double& run_ms) {
  const Stopwatch clock;
  SK_TRY_ASSIGN(const std::vector<Bytes> wanted, kernels_(inputs.tensors));
  run_ms = clock.ms();
  SK_TRY_ASSIGN(const std::vector<Difference> noise, moved_by_noise(*graph_, inputs.tensors, wanted, with_noise_));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ir::Tensor& tensor = graph_->tensor(graph_->outputs[i]);
    OutputResult& output = inference.outputs[i];
    output.difference = difference_of(*graph_, i, outputs[i], wanted[i]);
    if (!output.top.empty()) output.same_class = same_class(tensor, outputs[i], wanted[i]);
    if (!noise.empty()) output.noise = noise[i];
  }
  return {};
}

namespace {

// Reason why a part planned for the NPU ran on the CPU; empty: none did.
std::string fallback_of(const runtime::Session& session) {
  for (const auto& part : session.report().parts) {
    if (!part.fallback.empty()) return part.fallback;
  }
  return {};
}

size_t ops_on_npu(const runtime::Session& session) {
  return static_cast<size_t>(std::ranges::count_if(session.report().ops, [](const auto& op) { return op.on_npu; }));
}

}  // namespace

Result<DefaultProgram> DefaultProgram::create(ir::Graph graph, const runtime::Target& target,
                                              runtime::SessionOptions options) {
  options.keep_intermediates = false;
  SK_TRY_ASSIGN(auto session, runtime::Session::create(std::move(graph), target, options));
  return DefaultProgram(std::move(session));
}

Result<void> DefaultProgram::check(const InputSet& inputs, const std::vector<Bytes>& outputs,
                                   const runtime::Session& kept) {
  const std::vector<std::span<const uint8_t>> in(inputs.tensors.begin(), inputs.tensors.end());
  SK_TRY_ASSIGN(const std::vector<Bytes> own, session_->run(in));
  if (!fallback_of(kept).empty()) return {};
  if (const std::string why = fallback_of(*session_); !why.empty())
    return error(ErrorCode::device,
                 "{}: outputs not compared: the program that keeps intermediates ran on the NPU, but the one without "
                 "--compare=layers did not: {}",
                 inputs.name, why);
  if (const size_t mine = ops_on_npu(*session_), theirs = ops_on_npu(kept); mine != theirs) {
    log::warning(
        "{}: outputs not compared with the program without --compare=layers: it has {} operations on the NPU, the one "
        "that keeps intermediates {}",
        inputs.name, mine, theirs);
    return {};
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const auto [a, b] = std::ranges::mismatch(outputs[i], own[i]);
    if (a == outputs[i].end() && b == own[i].end()) continue;
    size_t differing = 0;
    for (size_t at = 0; at < own[i].size(); ++at) differing += own[i][at] != outputs[i][at] ? 1 : 0;
    return error(
        ErrorCode::device,
        "{}: output '{}' differs between the programs with and without intermediates: {} of {} bytes, the first at {}",
        inputs.name, kept.graph().tensor(kept.graph().outputs[i]).name, differing, own[i].size(),
        a - outputs[i].begin());
  }
  return {};
}

Result<void> check_tolerance(double tolerance, const Inference& inference, const ir::Graph& graph) {
  const auto too_far = [&](const std::string& what, double difference) {
    return error(ErrorCode::device, "{}: {} differs by {} from the CPU kernels; --tolerance is {}", inference.input,
                 what, difference, tolerance);
  };
  // Checks layers before outputs: a layer is more specific.
  for (const runtime::LayerDiff& layer : inference.layers) {
    if (layer.is_result && layer.compared && !(layer.max_of_result <= tolerance))
      return too_far(ir::describe_op(graph, layer.op), layer.max_of_result);
  }
  for (const OutputResult& output : inference.outputs) {
    if (output.difference && !(output.difference->largest <= tolerance))
      return too_far(fmt::format("output '{}'", output.name), output.difference->largest);
  }
  return {};
}

Result<Expectation> Expectation::read(const std::string& path, const ir::Graph& graph,
                                      const std::vector<std::string>& inferences, double tolerance) {
  SK_TRY_ASSIGN(const ResultPlace place, ResultPlace::create(path, graph, inferences));
  Expectation out{.outputs = {}, .tolerance = tolerance};
  for (size_t i = 0; i < inferences.size(); ++i) SK_TRY_INTO(out.outputs.emplace_back(), place.read(i));
  return out;
}

Result<void> Expectation::check(size_t inference, std::string_view name, const std::vector<Bytes>& got,
                                const ir::Graph& graph) const {
  std::string problems;
  for (size_t i = 0; i < got.size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(graph.outputs[i]);
    const Bytes& wanted = outputs[inference][i];
    const Deviation found = deviation(tensor, got[i], wanted, tolerance);
    if (found.differing == 0) continue;
    problems += (problems.empty() ? "" : "; ") + describe(tensor, got[i], wanted, found, tolerance);
  }
  if (problems.empty()) return {};
  return error(ErrorCode::device, "{}: {}", name, problems);
}

}  // namespace skillet::tools
