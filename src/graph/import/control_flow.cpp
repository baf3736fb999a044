#include "graph/import/control_flow.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "graph/ir/rules.h"

namespace skillet::tflite {
namespace {

using ir::TensorId;
using Kind = SubgraphCall::Kind;
using Ids = std::vector<TensorId>;

constexpr int32_t kCall = 31, kIf = 118, kWhile = 119, kComposite = 206;
// A small file must not become an endless graph.
constexpr size_t kOpsMax = 20000, kStepsMax = 5000;
constexpr int kDepthMax = 8;
constexpr int32_t kCopy = -1;  // Op::source_index of operations of subgraphs

class Expander {
 public:
  Expander(ir::Graph& graph, size_t subgraphs, const ReadSection& read, const ir::Evaluate& evaluate)
      : graph_(graph), subgraphs_(subgraphs), read_(read), shapes_(graph, evaluate) {}

  Result<void> run(const std::map<ir::OpId, SubgraphCall>& calls) {
    const std::vector<ir::Op> ops = std::exchange(graph_.ops, {});
    Ids ids(graph_.tensors.size());
    std::iota(ids.begin(), ids.end(), 0);
    for (size_t i = 0; i < ops.size(); ++i) {
      ir::Op op = with_operands(ops[i], ids);
      if (const auto call = calls.find(static_cast<ir::OpId>(i)); call != calls.end()) {
        SK_TRY_IN_CONTEXT(check_indices(call->second), name_of(op));
        if (replace(op, call->second, ids)) continue;
      }
      SK_TRY(append(std::move(op)));
    }
    for (TensorId& id : graph_.outputs) id = ids[static_cast<size_t>(id)];
    drop_unread_copies();
    drop_unused(ids.size());
    for (size_t i = 0; i < graph_.ops.size(); ++i) graph_.ops[i].source_index = static_cast<int32_t>(i);
    return {};
  }

 private:
  // A subgraph that was read, and the tensors of the graph that all its copies share: its constants.
  struct Source {
    Section section;
    Ids shared;
  };

  // Why an operation stays as it is.
  Error left(std::string reason) const { return error(ErrorCode::unsupported, "{}", reason); }

  static std::string name_of(const ir::Op& op) { return fmt::format("op {} {}", op.source_index, op.opaque_name); }

  Result<void> check_indices(const SubgraphCall& call) const {
    for (const int64_t index : {call.first, call.second})
      if (index <= 0 || index >= static_cast<int64_t>(subgraphs_))
        return error(ErrorCode::malformed, "subgraph {} of {}", index, subgraphs_);
    return {};
  }

  static ir::Op with_operands(const ir::Op& from, const Ids& ids) {
    ir::Op op = from;
    for (TensorId& id : op.inputs)
      if (id != ir::kNoTensor) id = ids[static_cast<size_t>(id)];
    return op;
  }

  Result<void> append(ir::Op op) { return shapes_.infer(graph_.add_op(std::move(op))); }
  Result<void> append_copy(ir::Op op) {
    op.source_index = kCopy;
    return append(std::move(op));
  }

  // Replaces an operation of the main graph; false: it cannot be, and nothing was added.
  bool replace(const ir::Op& op, const SubgraphCall& call, Ids& ids) {
    const size_t tensors = graph_.tensors.size(), ops = graph_.ops.size();
    Result<Ids> values = expand(op.inputs, call, op.outputs.size());
    if (!values) {
      log::message(log::Level::warning, "{}: {} is left as it is: {}", graph_.name, name_of(op),
                   values.error().message);
      remove_from(tensors, ops);
      return false;
    }
    for (size_t i = 0; i < values->size(); ++i) {
      const TensorId result = op.outputs[i], value = (*values)[i];
      // An input, a constant, or an earlier result, which readers of `result` read instead.
      ids[static_cast<size_t>(result)] = value;
      if (value < static_cast<TensorId>(tensors) || graph_.tensor(value).is_constant()) continue;
      ids[static_cast<size_t>(result)] = result;
      give_name(value, result, ops);
      std::ranges::replace(*values, value, result);
    }
    return true;
  }

  // Lets the operations from `first` on compute and read the file's tensor `result` instead of `value`.
  void give_name(TensorId value, TensorId result, size_t first) {
    std::string name = std::move(graph_.tensor(result).name);
    graph_.tensor(result) = graph_.tensor(value);
    graph_.tensor(result).name = std::move(name);
    for (ir::Op& op : std::span(graph_.ops).subspan(first)) {
      std::ranges::replace(op.inputs, value, result);
      std::ranges::replace(op.outputs, value, result);
    }
  }

  void remove_from(size_t tensors, size_t ops) {
    graph_.tensors.erase(graph_.tensors.begin() + static_cast<std::ptrdiff_t>(tensors), graph_.tensors.end());
    graph_.ops.erase(graph_.ops.begin() + static_cast<std::ptrdiff_t>(ops), graph_.ops.end());
    shapes_.forget(tensors);
    for (auto& [index, source] : sources_)
      if (std::ranges::any_of(source.shared, [&](TensorId id) { return id >= static_cast<TensorId>(tensors); }))
        source.shared.clear();
  }

  // Removes operations of subgraphs whose results nobody reads: counters and conditions, parts of no elements, and all
  // but the last step of what only the last one needs.
  void drop_unread_copies() {
    std::vector<bool> is_read(graph_.tensors.size());
    const auto read = [&](TensorId id) {
      if (id != ir::kNoTensor) is_read[static_cast<size_t>(id)] = true;
    };
    std::ranges::for_each(graph_.outputs, read);
    std::vector<ir::Op> kept;
    std::ranges::reverse(graph_.ops);
    for (ir::Op& op : graph_.ops) {
      const auto wanted = [&](TensorId id) { return is_read[static_cast<size_t>(id)]; };
      if (op.source_index == kCopy && std::ranges::none_of(op.outputs, wanted)) continue;
      std::ranges::for_each(op.inputs, read);
      kept.push_back(std::move(op));
    }
    std::ranges::reverse(kept);
    graph_.ops = std::move(kept);
  }

  // Removes the tensors from `first` on that no operation has.
  void drop_unused(size_t first) {
    Ids kept(graph_.tensors.size(), ir::kNoTensor);
    std::iota(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(first), 0);
    std::vector<ir::Tensor> tensors(graph_.tensors.begin(),
                                    graph_.tensors.begin() + static_cast<std::ptrdiff_t>(first));
    const auto keep = [&](TensorId& id) {
      if (id == ir::kNoTensor) return;
      TensorId& to = kept[static_cast<size_t>(id)];
      if (to == ir::kNoTensor) {
        to = static_cast<TensorId>(tensors.size());
        tensors.push_back(std::move(graph_.tensor(id)));
      }
      id = to;
    };
    for (ir::Op& op : graph_.ops) {
      std::ranges::for_each(op.inputs, keep);
      std::ranges::for_each(op.outputs, keep);
    }
    std::ranges::for_each(graph_.outputs, keep);
    graph_.tensors = std::move(tensors);
  }

  // Returns the results of an operation that runs subgraphs on `inputs`.
  Result<Ids> expand(Ids inputs, const SubgraphCall& call, size_t outputs, const std::string& suffix = "") {
    SK_TRY(check_indices(call));
    if (depth_ == kDepthMax) return left(fmt::format("subgraphs within each other, more than {} deep", kDepthMax));
    ++depth_;
    Result<Ids> values = call.kind == Kind::loop     ? loop(std::move(inputs), call, suffix)
                         : call.kind == Kind::branch ? branch(std::move(inputs), call, suffix)
                                                     : inlined(call.first, inputs, suffix);
    --depth_;
    if (values && values->size() != outputs)
      return left(fmt::format("{} results of a subgraph with {}", outputs, values->size()));
    return values;
  }

  Result<Ids> loop(Ids values, const SubgraphCall& call, const std::string& suffix) {
    for (size_t step = 0;; ++step) {
      SK_TRY_ASSIGN(const std::optional<bool> goes_on, condition(call.first, values));
      if (!goes_on) return left("its number of steps depends on values");
      if (!*goes_on) return values;
      if (++steps_ > kStepsMax) return left(fmt::format("more than {} steps", kStepsMax));
      SK_TRY_ASSIGN(Ids next, inlined(call.second, values, fmt::format("{}@{}", suffix, step)));
      if (next.size() != values.size()) return left("its body returns another number of values than it takes");
      values = std::move(next);
    }
  }

  // Nothing: it depends on values that are known only at run time.
  Result<std::optional<bool>> condition(int64_t subgraph, const Ids& values) {
    SK_TRY(ready(static_cast<uint32_t>(subgraph)));  // its constants stay for the next step
    const size_t tensors = graph_.tensors.size(), ops = graph_.ops.size();
    SK_TRY_ASSIGN(const Ids results, inlined(subgraph, values, ""));
    const std::optional<bool> known = results.size() == 1 ? known_condition(results[0]) : std::nullopt;
    remove_from(tensors, ops);
    return known;
  }

  std::optional<bool> known_condition(TensorId id) const {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.dtype != ir::DType::boolean || !tensor.is_constant() || tensor.data.size() != 1) return std::nullopt;
    return tensor.data[0] != 0;
  }

  Result<Ids> branch(Ids inputs, const SubgraphCall& call, const std::string& suffix) {
    if (inputs.empty() || inputs[0] == ir::kNoTensor) return left("it has no condition");
    const TensorId condition = inputs[0];
    inputs.erase(inputs.begin());
    if (const auto known = known_condition(condition))
      return inlined(*known ? call.first : call.second, inputs, suffix);
    SK_TRY_ASSIGN(const Ids yes, inlined(call.first, inputs, suffix));
    SK_TRY_ASSIGN(const Ids no, inlined(call.second, inputs, suffix));
    if (yes.size() != no.size()) return left("its branches have other numbers of results");
    Ids results;
    for (size_t i = 0; i < yes.size(); ++i) {
      SK_TRY_INTO(results.emplace_back(), selected(condition, yes[i], no[i]));
    }
    return results;
  }

  Result<TensorId> selected(TensorId condition, TensorId yes, TensorId no) {
    if (yes == no) return yes;
    ir::Tensor result = graph_.tensor(yes);
    result.data = {};
    result.owner = nullptr;
    const ir::Tensor& other = graph_.tensor(no);
    if (result.dtype != other.dtype || result.shape != other.shape || result.quant != other.quant)
      return left("its branches have results of other types, shapes or scales");
    const ir::Shape shape = result.shape;
    const TensorId id = graph_.add_tensor(std::move(result));
    SK_TRY(append_copy({.kind = ir::OpKind::select_v2, .inputs = {condition, yes, no}, .outputs = {id}}));
    if (graph_.tensor(id).shape != shape) return left("its condition is not one value");
    return id;
  }

  // Appends the operations of a subgraph, and returns its outputs. `suffix` makes the names of its tensors unique.
  Result<Ids> inlined(int64_t index, const Ids& inputs, const std::string& suffix) {
    SK_TRY_ASSIGN(const Section* section, ready(static_cast<uint32_t>(index)));
    const ir::Graph& from = section->graph;
    if (from.inputs.size() != inputs.size() || std::ranges::count(inputs, ir::kNoTensor) != 0)
      return left(fmt::format("{} values for a subgraph with {} inputs", inputs.size(), from.inputs.size()));
    Ids ids = sources_.at(static_cast<uint32_t>(index)).shared;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (graph_.tensor(inputs[i]).dtype != from.tensor(from.inputs[i]).dtype) return left("values of other types");
      ids[static_cast<size_t>(from.inputs[i])] = inputs[i];
    }
    for (size_t i = 0; i < from.ops.size(); ++i) {
      const auto call = section->calls.find(static_cast<ir::OpId>(i));
      SK_TRY(copy_op(from, from.ops[i], call == section->calls.end() ? nullptr : &call->second, suffix, ids));
    }
    Ids results;
    for (const TensorId id : from.outputs) results.push_back(shapes_.known(ids[static_cast<size_t>(id)]));
    if (std::ranges::count(results, ir::kNoTensor) != 0) return left("an output of a subgraph is not computed");
    return results;
  }

  Result<void> copy_op(const ir::Graph& from, const ir::Op& op, const SubgraphCall* call, const std::string& suffix,
                       Ids& ids) {
    ir::Op copy = with_operands(op, ids);
    for (TensorId& id : copy.inputs) id = shapes_.known(id);
    if (call != nullptr) {
      SK_TRY_ASSIGN(const Ids values, expand(copy.inputs, *call, op.outputs.size(), suffix));
      for (size_t i = 0; i < values.size(); ++i) ids[static_cast<size_t>(op.outputs[i])] = values[i];
      return {};
    }
    if (op.kind == ir::OpKind::opaque) return left(fmt::format("{} in a subgraph", op.opaque_name));
    for (TensorId& id : copy.outputs) {
      ir::Tensor tensor = from.tensor(id);
      tensor.name += suffix;
      ids[static_cast<size_t>(id)] = graph_.add_tensor(std::move(tensor));
      id = ids[static_cast<size_t>(id)];
    }
    drop_empty_parts(copy);
    if (graph_.ops.size() == kOpsMax) return left(fmt::format("more than {} operations", kOpsMax));
    return append_copy(std::move(copy));
  }

  // The first and last steps of a loop join lists with nothing before or behind an element.
  void drop_empty_parts(ir::Op& op) const {
    const auto empty = [&](TensorId id) { return graph_.tensor(id).shape.elems() == 0; };
    if (op.kind == ir::OpKind::concatenation && !std::ranges::all_of(op.inputs, empty)) std::erase_if(op.inputs, empty);
  }

  // A subgraph whose constants are in the graph.
  Result<const Section*> ready(uint32_t index) {
    auto found = sources_.find(index);
    if (found == sources_.end()) {
      SK_TRY_ASSIGN(Section section, read_(index).with_context(fmt::format("subgraph {}", index)));
      found = sources_.emplace(index, Source{std::move(section), {}}).first;
    }
    auto& [section, shared] = found->second;
    if (!shared.empty()) return &section;
    for (const ir::Tensor& tensor : section.graph.tensors) {
      if (tensor.is_variable) return left("it has values that are kept between runs");
      shared.push_back(tensor.is_constant() ? graph_.add_tensor(tensor) : ir::kNoTensor);
    }
    return &section;
  }

  ir::Graph& graph_;
  size_t subgraphs_;
  const ReadSection& read_;
  ir::ShapeInference shapes_;
  std::map<uint32_t, Source> sources_;
  size_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<SubgraphCall> subgraph_call(int32_t code, const schema::Operator& from) {
  if (const auto* loop = from.builtin_options_as_WhileOptions(); code == kWhile && loop != nullptr)
    return SubgraphCall{Kind::loop, loop->cond_subgraph_index(), loop->body_subgraph_index()};
  if (const auto* both = from.builtin_options_as_IfOptions(); code == kIf && both != nullptr)
    return SubgraphCall{Kind::branch, both->then_subgraph_index(), both->else_subgraph_index()};
  if (const auto* call = from.builtin_options_as_CallOptions(); code == kCall && call != nullptr)
    return SubgraphCall{Kind::call, call->subgraph(), call->subgraph()};
  const auto* composite = from.builtin_options_2_as_StableHLOCompositeOptions();
  if (code != kComposite || composite == nullptr) return std::nullopt;
  const int64_t index = composite->decomposition_subgraph_index();
  return SubgraphCall{Kind::call, index, index};
}

Result<void> expand_control_flow(ir::Graph& graph, const std::map<ir::OpId, SubgraphCall>& calls, size_t subgraphs,
                                 const ReadSection& read, const ir::Evaluate& evaluate) {
  SK_TRY(ir::check_structure(graph));
  return Expander(graph, subgraphs, read, evaluate).run(calls);
}

}  // namespace skillet::tflite
