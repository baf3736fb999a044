#include "tools/model/delegate_claims.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compile/advice.h"
#include "compile/report.h"
#include "graph/import/planned_memory.h"
#include "graph/passes/passes.h"
#include "graph/ref/ref.h"
#include "tools/model/check_chips.h"

namespace skillet::tools {
namespace {

// An operation stays with the host when any of what passes made of it does not go to the NPU. A model that has these
// as operations of its own (`skillet fix`) gives it the others.
void refuse(const compile::Compiled& compiled, const std::vector<compile::OpRow>& rows, DelegateClaims& out) {
  const auto source_of = [&](const compile::OpRow& row) { return compiled.graph.op(row.op).source_index; };
  std::vector<bool> is_partly_taken(out.why_not.size());
  const auto is_op = [&](int32_t op) { return op >= 0 && static_cast<size_t>(op) < out.why_not.size(); };
  for (const compile::OpRow& row : rows)
    if (row.on_npu && is_op(source_of(row))) is_partly_taken[static_cast<size_t>(source_of(row))] = true;
  for (const compile::OpRow& row : rows) {
    if (row.on_npu || !is_op(source_of(row))) continue;
    const auto at = static_cast<size_t>(source_of(row));
    if (!out.why_not[at].empty() || !out.on_cpu[at].empty()) continue;
    out.why_not[at] = row.plain.empty() ? "not for the NPU" : row.plain;
    out.remedies[at] = row.remedy;
    const bool is_unproven = row.remedy == npu::Remedy::unproven || row.remedy == npu::Remedy::one_job;
    if (!is_partly_taken[at] || is_unproven) continue;
    out.why_not[at] = "the NPU takes a part of what passes make of it; not the rest: " + out.why_not[at];
    out.remedies[at] = npu::Remedy::fix;
  }
}

// What passes took in shares the place of what computes it. The operations that are left in some form.
std::vector<bool> share_place(const compile::Compiled& compiled, DelegateClaims& out) {
  std::vector<bool> is_left(out.why_not.size());
  const auto is_op = [&](int32_t op) { return op >= 0 && static_cast<size_t>(op) < is_left.size(); };
  for (const ir::Op& op : compiled.graph.ops)
    if (is_op(op.source_index)) is_left[static_cast<size_t>(op.source_index)] = true;
  for (const auto& [gone, now] : compile::absorbed_by(compiled.rewrites)) {
    if (!is_op(gone) || !is_op(now) || is_left[static_cast<size_t>(gone)]) continue;
    is_left[static_cast<size_t>(gone)] = true;
    out.why_not[static_cast<size_t>(gone)] = out.why_not[static_cast<size_t>(now)];
    out.remedies[static_cast<size_t>(gone)] = out.remedies[static_cast<size_t>(now)];
  }
  return is_left;
}

// Where costs alone leave something to the CPU, the rest is not cut again: of a smaller set they would cut off more.
bool is_cut_by_cost(const compile::Compiled& compiled) {
  return std::ranges::all_of(compiled.ops, [](const compile::OpPlace& place) {
    return place.on_npu || place.remedy == npu::Remedy::take_all;
  });
}

// What needs no job.
void refuse_idle(const ir::Graph& part, DelegateClaims& out) {
  for (const ir::Op& op : part.ops)
    if (const auto at = static_cast<size_t>(op.source_index); out.why_not[at].empty())
      out.why_not[at] = out.on_cpu[at].empty() ? std::string(compile::kNoJob) : out.on_cpu[at];
}

// Operations between those that pass memory on go with them, to our CPU kernels; or all stay with the host.
void join(const ir::Graph& graph, std::span<const ir::OpId> joined, DelegateClaims& out) {
  const auto why_not = [&](ir::OpId op) -> std::string& { return out.why_not[static_cast<size_t>(op)]; };
  for (const ir::OpId op : joined) {
    if (graph.op(op).kind == ir::OpKind::opaque) continue;
    why_not(op).clear();
    out.remedies[static_cast<size_t>(op)] = npu::Remedy::none;
  }
  const auto refused = std::ranges::find_if(joined, [&](ir::OpId op) { return !why_not(op).empty(); });
  if (refused == joined.end()) return;
  for (const ir::OpId op : joined)
    if (why_not(op).empty())
      why_not(op) = fmt::format("it shares memory with op {}, which stays with the host", *refused);
}

// Operations that only compute shapes, and who reads those: since the model was read, constants of the same name.
struct ShapeOp {
  size_t op = 0;
  std::vector<size_t> readers;
};
std::vector<ShapeOp> shape_ops(const ir::Graph& graph) {
  const auto consumers = ir::consumers(graph);
  std::vector<ShapeOp> out;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto is_read = [&](ir::TensorId id) {
      return !consumers[static_cast<size_t>(id)].empty() || std::ranges::count(graph.outputs, id) != 0;
    };
    if (std::ranges::any_of(graph.ops[i].outputs, is_read)) continue;
    const std::vector<ir::Tensor> known = ir::known_outputs(graph, static_cast<ir::OpId>(i), ref::compute);
    if (known.empty()) continue;
    ShapeOp one{.op = i, .readers = {}};
    for (size_t id = 0; id < graph.tensors.size(); ++id) {
      const ir::Tensor& tensor = graph.tensors[id];
      const auto stands_for = [&](const ir::Tensor& value) {
        return tensor.name == value.name && std::ranges::equal(tensor.data, value.data);
      };
      if (tensor.is_constant() && std::ranges::any_of(known, stands_for))
        one.readers.insert(one.readers.end(), consumers[id].begin(), consumers[id].end());
    }
    out.push_back(std::move(one));
  }
  return out;
}

// And what only they read, whose values nobody needs.
std::vector<ShapeOp> with_sized(const ir::Graph& graph, std::vector<ShapeOp> shapes) {
  const auto consumers = ir::consumers(graph);
  const auto is_shape = [&](size_t op) { return std::ranges::count(shapes, op, &ShapeOp::op) != 0; };
  for (size_t i = graph.ops.size(); i-- > 0;) {
    ShapeOp one{.op = i, .readers = {}};
    bool is_returned = false;
    for (const ir::TensorId id : graph.ops[i].outputs) {
      is_returned |= std::ranges::count(graph.outputs, id) != 0;
      const auto& readers = consumers[static_cast<size_t>(id)];
      one.readers.insert(one.readers.end(), readers.begin(), readers.end());
    }
    if (is_returned || one.readers.empty() || !std::ranges::all_of(one.readers, is_shape)) continue;
    if (!is_shape(i)) shapes.push_back(std::move(one));
  }
  std::ranges::sort(shapes, {}, &ShapeOp::op);
  return shapes;
}

// What the host makes of a shape that it computes has no size before it has run, so that the NPU could not read it: our
// CPU kernels make it then. Once: its partition may be dropped.
void keep_sizes(const ir::Graph& graph, const std::vector<ShapeOp>& shapes, DelegateClaims& out) {
  const auto consumers = ir::consumers(graph);
  const auto is_shape = [&](size_t op) { return std::ranges::count(shapes, op, &ShapeOp::op) != 0; };
  const auto is_taken = [&](ir::OpId op) {
    return out.why_not[static_cast<size_t>(op)].empty() && !is_shape(static_cast<size_t>(op));
  };
  for (const ShapeOp& shape : shapes) {
    for (const size_t reader : shape.readers) {
      const bool is_read = std::ranges::any_of(graph.ops[reader].outputs, [&](ir::TensorId made) {
        return std::ranges::any_of(consumers[static_cast<size_t>(made)], is_taken);
      });
      if (!is_read || is_shape(reader) || out.why_not[reader].empty() || !out.on_cpu[reader].empty() ||
          !ref::prepare(graph, static_cast<ir::OpId>(reader)).ok())
        continue;
      out.on_cpu[reader] = std::exchange(out.why_not[reader], "");
    }
  }
}

// They go with those that read them.
void judge_shapes(const std::vector<ShapeOp>& shapes, std::vector<std::string>& why_not) {
  for (size_t i = shapes.size(); i-- > 0;) {
    const bool is_taken = std::ranges::all_of(shapes[i].readers, [&](size_t op) { return why_not[op].empty(); });
    why_not[shapes[i].op] = is_taken ? "" : "the host needs the shape that it computes";
  }
}

// What is left to the host is nothing that passes may take in.
ir::Graph without(ir::Graph graph, const LeftToHost& left) {
  for (const auto& [id, why] : left) {
    ir::Op& op = graph.ops[static_cast<size_t>(id)];
    op.opaque_name = std::string(ir::op_name(op));
    op.kind = ir::OpKind::opaque;
    op.attrs = ir::default_attrs(op.kind);
  }
  return graph;
}

}  // namespace

bool is_too_free(const ir::Graph& graph, const runtime::SessionOptions& session) {
  return graph.has_free_sizes && runtime::with_defaults(session).partition == compile::PartitionBy::predicted;
}

// As the delegate does it with its host: what is dropped changes how the rest is divided, until nothing is dropped.
Result<DelegateClaims> delegate_claims(const runtime::Target& target, const ir::Graph& model,
                                       runtime::SessionOptions session, const LeftToHost& left) {
  const ir::Graph graph = without(model, left);
  DelegateClaims out{.why_not = std::vector<std::string>(graph.ops.size()),
                     .remedies = std::vector<npu::Remedy>(graph.ops.size(), npu::Remedy::none),
                     .is_folded = {},
                     .on_cpu = std::vector<std::string>(graph.ops.size())};
  for (const auto& [op, why] : left) out.why_not[static_cast<size_t>(op)] = why;
  session = runtime::with_defaults(std::move(session));
  if (is_too_free(graph, session)) session.partition = compile::PartitionBy::all;
  SK_TRY_ASSIGN(const compile::Compiled planned, runtime::plan_for(target, graph, session));
  std::vector<compile::OpRow> rows = compile::rows(planned);
  SK_TRY(advise_unproven(rows, planned, target, graph, session));
  refuse(planned, rows, out);
  const std::vector<bool> is_left = share_place(planned, out);
  for (size_t i = 0; i < is_left.size(); ++i)
    if (!is_left[i]) out.why_not[i] = "nothing reads what it computes";
  const std::vector<ir::OpId> joined = tflite::joined_by_memory(graph);
  join(graph, joined, out);
  const std::vector<ShapeOp> shapes = with_sized(graph, shape_ops(graph));
  std::ptrdiff_t claimed = -1;
  std::set<int32_t> weighed;
  while (claimed != std::ranges::count(out.why_not, "")) {
    keep_sizes(graph, shapes, out);
    judge_shapes(shapes, out.why_not);
    claimed = std::ranges::count(out.why_not, "");
    std::vector<npu::Support> support;
    for (const std::string& why : out.why_not)
      support.push_back(why.empty() ? npu::Support::yes() : npu::Support::no(npu::Remedy::none, "{}", why));
    out.partitions = 0;
    for (const passes::Partition& part : passes::partition(graph, support)) {
      if (!part.on_npu) continue;
      ++out.partitions;
      runtime::SessionOptions options = session;
      if (std::ranges::all_of(part.op_map, [&](ir::OpId op) { return weighed.contains(op); }))
        options.partition = compile::PartitionBy::all;
      SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, part.graph, options));
      refuse(compiled, compile::rows(compiled), out);
      share_place(compiled, out);
      if (is_cut_by_cost(compiled)) weighed.insert(part.op_map.begin(), part.op_map.end());
      if (compile::npu_parts(compiled) == 0) refuse_idle(part.graph, out);
    }
    join(graph, joined, out);
  }
  out.is_folded.resize(out.why_not.size());
  for (size_t op = 0; op < out.why_not.size(); ++op)
    if (!out.why_not[op].empty()) out.on_cpu[op].clear();
  for (const ShapeOp& one : shapes) out.is_folded[one.op] = out.why_not[one.op].empty();
  return out;
}

}  // namespace skillet::tools
