#include "compile/cpu_speed.h"

#include <algorithm>

#include "base/is_any_of.h"
#include "graph/ir/macs.h"

namespace skillet::compile {
namespace {

struct Row {
  int core;
  std::string_view type;
  CpuSpeed::Rates in_cycle;
};
constexpr Row kRows[] = {
#define CPU_SPEED(core, type, dense, depthwise, element, table, copy, mark, source) \
  {core, #type, {dense, depthwise, element, table, copy}},
#include "compile/cpu_speeds.def"
#undef CPU_SPEED
};

// Four cores are 3.2 times as fast as one (published times of one core and of four: 2.8 to 3.6).
constexpr double kLostByEach = 0.2 / 3;
double together(int cores) { return cores * (1 - kLostByEach * std::min(cores - 1, 3)); }
constexpr int kCoresOfRows = 4;

CpuType type_of(const ir::Graph& graph, const ir::Op& op) {
  // Operations of a host program may have no operands at all (CALL_ONCE).
  const ir::TensorId out = op.outputs.empty() ? ir::kNoTensor : op.outputs[0];
  const ir::TensorId id = op.input(0) == ir::kNoTensor ? out : op.input(0);
  switch (id == ir::kNoTensor ? ir::DType::int8 : graph.tensor(id).dtype) {
    case ir::DType::uint8: return CpuType::uint8;
    case ir::DType::float32:
    case ir::DType::float16: return CpuType::floats;
    default: return CpuType::int8;
  }
}

double bytes_of(const ir::Graph& graph, const ir::Op& op) {
  double bytes = 0;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId tensor : *list)
      if (tensor != ir::kNoTensor) bytes += static_cast<double>(graph.tensor(tensor).bytes());
  }
  return bytes;
}

}  // namespace

CpuWork cpu_work_of(const ir::Graph& graph, ir::OpId id) {
  using enum ir::OpKind;
  const ir::OpKind kind = graph.op(id).kind;
  if (kind == depthwise_conv_2d) return CpuWork::depthwise;
  if (is_any_of(kind, {logistic, tanh, hard_swish, elu, exp, gelu, softmax, byte_table})) return CpuWork::table;
  if (is_any_of(kind, {resize_bilinear, max_pool_2d, average_pool_2d, mean}) || ir::is_elementwise(kind))
    return CpuWork::element;
  return ir::op_macs(graph, id) > 0 ? CpuWork::dense : CpuWork::copy;
}

double CpuSpeed::us(const ir::Graph& graph, ir::OpId id) const { return us(graph, id, type_of(graph, graph.op(id))); }

double CpuSpeed::us(const ir::Graph& graph, ir::OpId id, CpuType type) const {
  constexpr double kFloatBytes = 4;
  const ir::Op& op = graph.op(id);
  const Rates& rate = rates[static_cast<size_t>(type)];
  const auto macs = static_cast<double>(ir::op_macs(graph, id));
  const bool widens = type == CpuType::floats && type_of(graph, op) != CpuType::floats;
  const double bytes = bytes_of(graph, op) * (widens ? kFloatBytes : 1);
  switch (cpu_work_of(graph, id)) {
    case CpuWork::dense: return std::max(macs / rate.dense, bytes / rate.copy);
    case CpuWork::depthwise: return std::max(macs / rate.depthwise, bytes / rate.copy);
    case CpuWork::element: return bytes / rate.element;
    case CpuWork::table: return bytes / rate.table;
    case CpuWork::copy: return bytes / rate.copy;
  }
  return 0;
}

CpuSpeed plain_cpu(double macs_per_us, double bytes_per_us) {
  CpuSpeed out;
  out.rates.fill({macs_per_us, macs_per_us, bytes_per_us, bytes_per_us, bytes_per_us});
  return out;
}

std::optional<CpuSpeed> cpu_speed_of(int core, double clock_ghz, int cores) {
  std::optional<CpuSpeed> out;
  const double cycles = clock_ghz * 1e3 * kCoresOfRows * together(cores) / together(kCoresOfRows);
  for (const Row& row : kRows) {
    if (row.core != core) continue;
    if (!out) out.emplace();
    const CpuSpeed::Rates& r = row.in_cycle;
    const auto type = static_cast<size_t>(std::ranges::find(kCpuTypeNames, row.type) - kCpuTypeNames.begin());
    out->rates[type] = {r.dense * cycles, r.depthwise * cycles, r.element * cycles, r.table * cycles, r.copy * cycles};
  }
  return out;
}

}  // namespace skillet::compile
