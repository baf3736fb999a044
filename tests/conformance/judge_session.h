// Compares the results of a session op by op with the CPU kernels.
// Called by the tests with random graphs.
// Must not know: how the graphs are made.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/ref/ref.h"
#include "npu/steps_off.h"
#include "runtime/session.h"

namespace skillet {

struct Tally {
  int compared = 0, on_cpu = 0, fallbacks = 0, jobs_max = 0;
};

// Compares each op on the chip with the CPU kernel on the chip's own inputs.
inline std::string check_chip(runtime::Session& session, const npu::Chip& chip, Tally& tally) {
  const auto diffs = session.compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  for (const runtime::LayerDiff& diff : *diffs) {
    tally.compared += diff.compared;
    const ir::Graph& graph = session.graph();
    if (diff.compared && diff.max_abs_diff > npu::steps_off(*npu::driver_of(chip).value(), chip, graph, diff.op))
      return fmt::format("{}: {} of {} elements differ, by up to {}", ir::describe_op(session.graph(), diff.op),
                         diff.differing, diff.elems, diff.max_abs_diff);
  }
  return "";
}

// Checks the ops on the CPU, planned there or moved after the device failed: equal to the kernel's result on the same
// inputs.
inline std::string check_cpu(runtime::Session& session, Tally& tally) {
  const ir::Graph& graph = session.graph();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    const runtime::PartReport& part = session.report().parts[session.report().ops[i].part];
    if (part.on_npu && part.fallback.empty()) continue;
    ++tally.on_cpu;
    std::vector<Bytes> bytes(graph.tensors.size());
    std::vector<std::span<uint8_t>> spans(graph.tensors.size());
    for (const auto* operands : {&graph.op(id).inputs, &graph.op(id).outputs}) {
      for (const ir::TensorId tensor : *operands) {
        if (tensor == ir::kNoTensor || graph.tensor(tensor).bytes() == 0) continue;
        auto now = session.tensor(tensor);
        if (!now.ok()) return now.error().message;
        bytes[static_cast<size_t>(tensor)] = std::move(now).value();
        spans[static_cast<size_t>(tensor)] = bytes[static_cast<size_t>(tensor)];
      }
    }
    const auto before = bytes;
    const auto kernel = ref::prepare(graph, id);
    if (!kernel.ok()) return kernel.error().message;
    if (auto ran = (*kernel)->run(spans); !ran.ok()) return ran.error().message;
    if (bytes != before) return ir::describe_op(graph, id) + ": not what its CPU kernel gives";
  }
  return "";
}

}  // namespace skillet
