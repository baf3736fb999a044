#include "runtime/trusted_driver.h"

#include <algorithm>
#include <map>

#include "compile/report.h"
#include "graph/ref/all_bytes.h"
#include "runtime/program_cache.h"

namespace skillet::runtime {
namespace {

// compile() can omit switches that no tuning has on; without the others there is no program.
bool is_left_out(const npu::TuningSwitch& one) { return !one.since; }

constexpr const char* kSeenWrong = "this device computed it wrong before";

}  // namespace

npu::Support TrustedDriver::supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const {
  npu::Support support = inner().supports(chip, graph, op);
  if (!support.ok) return support;
  if (trust_.refutes(TrustKind::operation) && trust_.is_refuted(TrustKind::operation, operation_key(graph, op)))
    return npu::Support::no_as_seen(kSeenWrong);
  const auto is_switch = [&](const npu::Assumption* one) {
    return std::ranges::any_of(inner().switches(),
                               [&](const npu::TuningSwitch& row) { return row.name == one->name && is_left_out(row); });
  };
  std::erase_if(support.stands_on, [&](const npu::Assumption* one) {
    return is_switch(one) && trust_.is_refuted(TrustKind::assumption, one->name);
  });
  for (const npu::Assumption* one : support.stands_on) {
    if (trust_.is_refuted(TrustKind::assumption, one->name))
      return npu::Support::no_as_seen(
          fmt::format("this device differs from an assumption ({}: {})", one->name, one->what));
  }
  return support;
}

std::vector<std::string> refuted_switches(const npu::Driver& driver, const Trust& trust) {
  std::vector<std::string> out;
  for (const npu::TuningSwitch& one : driver.switches())
    if (is_left_out(one) && trust.is_refuted(TrustKind::assumption, one.name)) out.emplace_back(one.name);
  return out;
}

ir::Graph operation_alone(const ir::Graph& graph, ir::OpId op) {
  ir::Graph alone;
  ir::Op copy = graph.op(op);
  std::map<ir::TensorId, ir::TensorId> numbers;  // an operand may occur twice
  const auto take = [&](ir::TensorId& id) {
    if (id == ir::kNoTensor) return;
    const auto [at, is_new] = numbers.try_emplace(id, static_cast<ir::TensorId>(alone.tensors.size()));
    if (is_new) alone.tensors.push_back(graph.tensor(id));
    id = at->second;
  };
  std::ranges::for_each(copy.inputs, take);
  for (const ir::TensorId id : copy.inputs) {
    if (id != ir::kNoTensor && !alone.tensor(id).is_constant() && std::ranges::count(alone.inputs, id) == 0)
      alone.inputs.push_back(id);
  }
  std::ranges::for_each(copy.outputs, take);
  alone.outputs = copy.outputs;
  alone.ops.push_back(std::move(copy));
  return alone;
}

// Writes an operation that maps bytes to bytes as a BYTE_TABLE: passes replace such operations by each other, and a
// wrong table is wrong under any name.
static void write_as_table(ir::Graph& alone) {
  ir::Op& op = alone.ops[0];
  if (alone.inputs.size() != 1 || op.outputs.size() != 1 || op.kind == ir::OpKind::byte_table) return;
  const ir::TensorId from = alone.inputs[0], to = op.outputs[0];
  const auto is_byte = [&](ir::TensorId id) { return ir::dtype_bytes(alone.tensor(id).dtype) == 1; };
  const bool has_numbers_only = std::ranges::all_of(op.inputs, [&](ir::TensorId id) {
    return id == from || id == ir::kNoTensor || alone.tensor(id).shape.elems() == 1;
  });
  if (!is_byte(from) || !is_byte(to) || alone.tensor(from).shape != alone.tensor(to).shape || !has_numbers_only) return;
  auto values = ref::of_each_byte(alone, alone.ops, from, to);
  if (!values.ok()) return;
  ir::Tensor table;
  table.dtype = alone.tensor(to).dtype;
  table.shape = {256};
  ir::set_constant(table, std::move(*values));
  ir::Op as_table{.kind = ir::OpKind::byte_table, .attrs = ir::NoAttrs{}};
  as_table.inputs = {from, alone.add_tensor(std::move(table))};
  as_table.outputs = {to};
  op = std::move(as_table);
}

std::string operation_key(const ir::Graph& graph, ir::OpId op) {
  ir::Graph alone = operation_alone(graph, op);
  write_as_table(alone);
  return graph_key(alone);
}

compile::ModelKeys model_keys(const ir::Graph& model) {
  compile::ModelKeys out;
  for (size_t op = 0; op < model.ops.size(); ++op)
    out.emplace(model.ops[op].source_index, operation_key(model, static_cast<ir::OpId>(op)));
  return out;
}

std::set<std::string> operation_names(const ir::Graph& graph, ir::OpId op, std::span<const passes::Rewrite> rewrites,
                                      const compile::ModelKeys& keys) {
  std::set<std::string> out = {operation_key(graph, op)};
  const int32_t source = graph.op(op).source_index;
  const std::map<int32_t, int32_t> gone = compile::absorbed_by(rewrites);
  for (const auto& [of_model, key] : keys) {
    const auto now = gone.find(of_model);
    if ((now == gone.end() ? of_model : now->second) == source) out.insert(key);
  }
  return out;
}

compile::Kept refuted_operations(const ir::Graph& model, const Trust& trust) {
  compile::Kept out;
  if (!trust.refutes(TrustKind::operation)) return out;
  for (const auto& [source, key] : model_keys(model))
    if (trust.is_refuted(TrustKind::operation, key)) out.emplace(source, npu::Support::no_as_seen(kSeenWrong));
  return out;
}

}  // namespace skillet::runtime
