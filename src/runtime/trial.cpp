#include "runtime/trial.h"

#include <numeric>

#include "base/splitmix64.h"
#include "npu/steps_off.h"
#include "runtime/trusted_driver.h"
#include "runtime/verify.h"

namespace skillet::runtime {
namespace {

Bytes trial_bytes(const ir::Tensor& tensor, size_t index, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  const bool is_signed = tensor.dtype == ir::DType::int8;
  const uint8_t low = is_signed ? 0x80 : 0, high = is_signed ? 0x7f : 0xff;
  const auto zero = static_cast<uint8_t>(tensor.quant.zero_point());
  SplitMix64 random(seed);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint64_t next = random.next();
    switch (index) {
      case 1: bytes[i] = zero; break;
      case 2: bytes[i] = (next & 1) != 0 ? high : low; break;
      case 3: bytes[i] = static_cast<uint8_t>(i); break;
      default: bytes[i] = static_cast<uint8_t>(next >> 32); break;
    }
  }
  return bytes;
}

}  // namespace

compile::Compiled alone(const ir::Graph& part) {
  compile::Compiled out;
  out.graph = part;
  out.model_ops = out.graph.ops.size();
  out.ops.assign(out.graph.ops.size(), {.on_npu = true});
  compile::Part& only = out.parts.emplace_back();
  only.partition.on_npu = true;
  only.partition.graph = out.graph;
  only.partition.op_map.resize(out.graph.ops.size());
  std::iota(only.partition.op_map.begin(), only.partition.op_map.end(), 0);
  only.partition.tensor_map.resize(out.graph.tensors.size());
  std::iota(only.partition.tensor_map.begin(), only.partition.tensor_map.end(), 0);
  return out;
}

SessionOptions with_time(SessionOptions options) {
  options.timeout = std::max(options.timeout, SessionOptions().timeout);
  return options;
}

SessionOptions trial_options(const npu::Driver& driver, const Trust& trust, const SessionOptions& options, bool keep) {
  return {.compile = {.tuning = options.compile.tuning,
                      .switches = options.compile.switches,
                      .without = refuted_switches(driver, trust),
                      .choices = options.compile.choices,
                      .unproven = npu::Unproven::take},
          .allow_fallback = false,
          .keep_intermediates = keep,
          .timeout = options.timeout,
          .tuning_file = options.tuning_file,
          .tuning = options.tuning};
}

void note_wrong(const Session& session, const Target& target, std::span<const LayerDiff> diffs, std::set<ir::OpId>& ops,
                std::string& what) {
  for (const LayerDiff& diff : diffs) {
    if (!diff.compared) continue;
    const int steps = npu::steps_off(*target.driver, target.chip, session.graph(), diff.op);
    if (diff.max_abs_diff <= steps) continue;
    if (ops.insert(diff.op).second && what.empty())
      what =
          fmt::format("{}: {} of {} values are off, by up to {}; {} is allowed",
                      ir::describe_op(session.graph(), diff.op), diff.differing, diff.elems, diff.max_abs_diff, steps);
  }
}

std::vector<Bytes> trial_inputs(const ir::Graph& graph, size_t index) {
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.inputs)
    out.push_back(trial_bytes(graph.tensor(id), index, graph.inputs.size() * 7919 + out.size()));
  return out;
}

}  // namespace skillet::runtime
