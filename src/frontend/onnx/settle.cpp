// Visits the nodes of a file in order: sizes, constants, nodes that only pass a value on, branches.
#include "frontend/onnx/settle.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/text.h"

namespace skillet::onnx {
namespace {

// True for nodes whose output is their first input.
bool passes_on(const Model& model, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNone || node.outputs.empty() || node.outputs[0] == kNone) return false;
  if (node.op == "Cast") return model.value(node.inputs[0]).dtype == dtype_of(int_of(node, "to", 0));
  const bool trains = node.inputs.size() > 2 && node.inputs[2] != kNone;
  return (node.op == "Identity" || (node.op == "Dropout" && !trains)) && node.domain.empty();
}

// Number of elements that may be computed from constants: a multiple of those in the file, plus a constant.
int64_t budget_of(const Model& model) {
  constexpr int64_t kMore = 1 << 26, kTimes = 8;
  int64_t elems = 0;
  for (const Value& one : model.values) elems += one.is_constant ? elems_of(one).value_or(0) : 0;
  return kMore + kTimes * elems;
}

Result<void> check_elements(const Model& model, const Node& node, bool is_folded, int64_t& budget) {
  if (node.outputs.empty() || node.outputs[0] == kNone) return {};
  const Value& out = model.value(node.outputs[0]);
  const auto elems = elems_of(out);
  if (is_folded) budget -= elems.value_or(0);
  const bool is_known = out.dims && std::ranges::all_of(*out.dims, [](int64_t dim) { return dim >= 0; });
  const bool fills = (node.op == "ConstantOfShape" || node.op == "Range") && is_known;  // nothing else can compute it
  if (fills && !is_folded && (!elems || *elems > kMostElems))
    return error(ErrorCode::unsupported, "'{}' has more than {} elements: write it into the file as an initializer",
                 printable(out.name), kMostElems);
  if (budget >= 0) return {};
  return error(ErrorCode::unsupported,
               "'{}': too many elements are computed from constants; write the results into the file as initializers",
               printable(out.name));
}

// Visits the nodes in order.
class Settler {
 public:
  explicit Settler(ModelFile& file) : file_(file), model_(file.model), instead_(model_.values.size()) {
    std::iota(instead_.begin(), instead_.end(), 0);
    note_reads(model_.nodes);
  }

  Result<void> run() {
    std::vector<Node> todo = std::move(model_.nodes);  // the next one last
    std::ranges::reverse(todo);
    while (!todo.empty()) {
      Node node = std::move(todo.back());
      todo.pop_back();
      for (int& id : node.inputs) id = id == kNone ? kNone : instead_[static_cast<size_t>(id)];
      for (int& id : node.inner_inputs) id = instead_[static_cast<size_t>(id)];
      if (!take_branch(node, todo)) SK_TRY(visit(std::move(node)));
    }
    model_.nodes = std::move(nodes_);
    for (const Node& node : model_.nodes)
      for (const int id : node.inner_inputs)
        model_.values[static_cast<size_t>(id)].is_output = true;  // so units end there
    for (NamedValue& out : file_.outputs) {
      out.value = instead_[static_cast<size_t>(out.value)];
      model_.values[static_cast<size_t>(out.value)].is_output = true;
    }
    return {};
  }

 private:
  void note_reads(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      read_.insert(node.inputs.begin(), node.inputs.end());
      read_.insert(node.inner_inputs.begin(), node.inner_inputs.end());
      for (const auto& [name, branch] : node.branches) {
        note_reads(branch.nodes);
        read_.insert(branch.outputs.begin(), branch.outputs.end());
      }
    }
  }

  // Puts the nodes of the branch that an If takes in its place, if its condition is known.
  bool take_branch(Node& node, std::vector<Node>& todo) const {
    if (node.branches.empty() || node.inputs.size() != 1 || node.inputs[0] == kNone) return false;
    const auto condition = numbers(model_.value(node.inputs[0]));
    if (!condition || condition->size() != 1) return false;
    const auto taken = node.branches.find((*condition)[0] != 0 ? "then_branch" : "else_branch");
    if (taken == node.branches.end() || taken->second.outputs.size() != node.outputs.size()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      Node& pass = todo.emplace_back();
      pass.op = "Identity", pass.name = node.name;
      pass.inputs = {taken->second.outputs[i]}, pass.outputs = {node.outputs[i]};
    }
    std::vector<Node>& inside = taken->second.nodes;
    std::move(inside.rbegin(), inside.rend(), std::back_inserter(todo));
    return true;
  }

  Result<void> visit(Node node) {
    const bool has_more =
        std::ranges::any_of(node.outputs.begin() + std::min<std::ptrdiff_t>(1, std::ssize(node.outputs)),
                            node.outputs.end(), [&](int id) { return id != kNone && read_.contains(id); });
    if (passes_on(model_, node) && !has_more) {
      instead_[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
      return {};
    }
    const auto context = [&] { return fmt::format("node '{}' {}", printable(node.name), printable(node.op)); };
    SK_TRY_IN_CONTEXT(infer(model_, node), context());
    const bool is_folded = fold(file_, node);
    SK_TRY_IN_CONTEXT(check_elements(model_, node, is_folded, budget_), context());
    if (!is_folded) nodes_.push_back(std::move(node));
    return {};
  }

  ModelFile& file_;
  Model& model_;
  std::vector<int> instead_;  // by value: the one that its readers read
  std::set<int> read_;        // values that are read, to find a used second output of Dropout
  std::vector<Node> nodes_;
  int64_t budget_ = budget_of(model_);
};

}  // namespace

Result<void> settle(ModelFile& file) { return Settler(file).run(); }

}  // namespace skillet::onnx
