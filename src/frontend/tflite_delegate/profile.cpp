#include "frontend/tflite_delegate/profile.h"

#include "graph/ir/macs.h"

namespace skillet::delegate {
namespace {

// Work of an operation. Operations that only move data count by the bytes that they write.
double work_of(const ir::Graph& graph, ir::OpId id) {
  double bytes = 0;
  for (const ir::TensorId output : graph.op(id).outputs)
    if (output != ir::kNoTensor) bytes += static_cast<double>(graph.tensor(output).bytes());
  return static_cast<double>(ir::op_macs(graph, id)) + bytes + 1;
}

}  // namespace

Profile::Profile(const runtime::Session& session) {
  const ir::Graph& graph = session.graph();
  const runtime::Report& report = session.report();
  for (size_t part = 0; part < report.parts.size(); ++part) {
    double all = 0;
    for (const ir::OpId op : report.parts[part].ops) all += work_of(graph, op);
    const bool on_npu = report.parts[part].on_npu && report.parts[part].fallback.empty();
    for (const ir::OpId op : report.parts[part].ops) {
      const std::string tag = fmt::format("Skillet {} {}", on_npu ? "NPU" : "CPU", ir::op_name(graph.op(op)));
      events_.push_back({tag, graph.op(op).source_index, part, work_of(graph, op) / all});
    }
  }
}

void Profile::tell(const runtime::Session& session, void* profiler) const {
  if (profiler == nullptr) return;
  auto* const host = static_cast<TfLiteProfiler*>(profiler);
  for (const Event& one : events_) {
    const double us = session.report().parts[one.part].run_ms * 1000 * one.share;
    host->AddEvent(one.tag.c_str(), kDelegateProfiledOperator, static_cast<uint64_t>(us + 0.5), one.node, 0);
  }
}

}  // namespace skillet::delegate
