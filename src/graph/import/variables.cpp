#include "graph/import/variables.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "graph/import/tables.h"

namespace skillet::tflite {
namespace {

constexpr int32_t kCallOnce = 129, kVarHandle = 142, kReadVariable = 143, kAssignVariable = 144;
constexpr size_t kInitialSubgraphsMax = 16, kNameBytesMax = 4096;

}  // namespace

Result<bool> Variables::take(int32_t code, const schema::Operator& from) {
  if (code == kCallOnce && from.builtin_options_as_CallOnceOptions() != nullptr) {
    SK_TRY(add_initial(*from.builtin_options_as_CallOnceOptions()));
    return true;
  }
  if (const ir::TensorId out = operand(from.outputs(), 0); code == kVarHandle && out != ir::kNoTensor) {
    SK_TRY(add_handle(from.builtin_options_as_VarHandleOptions(), out));
    return true;
  }
  if (code != kReadVariable && code != kAssignVariable) return false;
  return use(code == kReadVariable, from);
}

ir::TensorId Variables::operand(const flatbuffers::Vector<int32_t>* list, flatbuffers::uoffset_t i) const {
  const ir::TensorId id = i < count(list) ? list->Get(i) : ir::kNoTensor;
  return id >= 0 && static_cast<size_t>(id) < graph_.tensors.size() ? id : ir::kNoTensor;
}

Result<void> Variables::add_initial(const schema::CallOnceOptions& options) {
  const int32_t subgraph = options.init_subgraph_index();
  if (subgraph <= 0 || static_cast<size_t>(subgraph) >= count(model_.subgraphs()))
    return error(ErrorCode::malformed, "CALL_ONCE: subgraph {} of {}", subgraph, count(model_.subgraphs()));
  initial_subgraphs_.insert(static_cast<uint32_t>(subgraph));
  if (initial_subgraphs_.size() <= kInitialSubgraphsMax) return {};
  return error(ErrorCode::unsupported, "CALL_ONCE of more than {} subgraphs", kInitialSubgraphsMax);
}

Result<void> Variables::add_handle(const schema::VarHandleOptions* options, ir::TensorId handle) {
  if (options == nullptr) return error(ErrorCode::malformed, "VAR_HANDLE: no name");
  const Name name = {view_of(options->container()), view_of(options->shared_name())};
  if (name.first.size() + name.second.size() > kNameBytesMax)
    return error(ErrorCode::unsupported, "VAR_HANDLE: a name of {} bytes", name.first.size() + name.second.size());
  handles_[handle] = name;
  return {};
}

Result<bool> Variables::use(bool reads, const schema::Operator& from) {
  const auto handle = handles_.find(operand(from.inputs(), 0));
  const ir::TensorId value = reads ? operand(from.outputs(), 0) : operand(from.inputs(), 1);
  if (handle == handles_.end() || value == ir::kNoTensor) return false;
  auto [variable, is_new] = variables_.emplace(handle->second, ir::kNoTensor);
  if (is_new) {
    ir::Tensor tensor = graph_.tensor(value);
    const auto& [container, name] = handle->second;
    tensor.name = printable(container.empty() ? std::string(name) : fmt::format("{}/{}", container, name));
    tensor.is_variable = true;
    tensor.data = {};
    tensor.owner = nullptr;
    variable->second = graph_.add_tensor(std::move(tensor));
  }
  ir::Op op;
  op.kind = reads ? ir::OpKind::read_variable : ir::OpKind::assign_variable;
  op.source_index = static_cast<int32_t>(graph_.ops.size());
  op.inputs = {reads ? variable->second : value};
  op.outputs = {reads ? value : variable->second};
  graph_.add_op(std::move(op));
  return true;
}

Result<void> Variables::set_initial(const Variables& initial) {
  const ir::Graph& from = initial.graph_;
  const auto is_set = [&](const ir::Op& op) {
    return op.kind == ir::OpKind::assign_variable && from.tensor(op.inputs[0]).is_constant();
  };
  if (const auto other = std::ranges::find_if_not(from.ops, is_set); other != from.ops.end())
    return error(ErrorCode::unsupported,
                 "{}: it runs once before the first run; only assignments of constants to variables are supported",
                 ir::op_name(*other));
  for (const auto& [name, set] : initial.variables_) {
    const auto variable = variables_.find(name);
    if (variable == variables_.end()) continue;  // unused
    const auto last =
        std::ranges::find(from.ops.rbegin(), from.ops.rend(), set, [](const ir::Op& op) { return op.outputs[0]; });
    const ir::Tensor& value = from.tensor(last->inputs[0]);
    ir::Tensor& to = graph_.tensor(variable->second);
    if (to.dtype != value.dtype || to.shape != value.shape)
      return error(ErrorCode::malformed, "{} is set to {}", ir::describe_tensor(graph_, variable->second),
                   ir::describe_tensor(from, last->inputs[0]));
    to.data = value.data;
    to.owner = value.owner;
  }
  return {};
}

}  // namespace skillet::tflite
