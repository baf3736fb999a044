// A tree of elementwise operations whose only computed input is one 8-bit tensor becomes one table of 256 bytes: SiLU
// (LOGISTIC and MUL), HARD_SWISH or Mish as separate ops, and float functions between DEQUANTIZE and QUANTIZE. The CPU
// kernels compute each of the 256 values, so the result is the same byte for byte.
#include <algorithm>
#include <set>

#include "base/is_any_of.h"
#include "graph/passes/rewrite.h"
#include "graph/ref/all_bytes.h"

namespace skillet::passes {
namespace {

using ir::OpKind;
using ir::TensorId;

constexpr size_t kOpsMax = 24;  // in a tree

// The operations that lead from one tensor to the output of the last of them.
struct Tree {
  TensorId from = ir::kNoTensor;
  std::set<ir::OpId> ops;
};

class Finder {
 public:
  Finder(Rewriter& rewriter, ir::OpId root) : rewriter_(rewriter), shape_(rewriter.tensor(output_of(root)).shape) {
    add(root);
  }

  // Trees with the same root, each larger than the previous one.
  std::vector<Tree> trees() {
    std::vector<Tree> out;
    while (is_valid_ && ops_.size() <= kOpsMax) {
      if (inputs_.size() == 1 && is_computed_byte(rewriter_.tensor(*inputs_.begin())))
        out.push_back({*inputs_.begin(), ops_});
      if (!grow()) break;
    }
    return out;
  }

 private:
  TensorId output_of(ir::OpId id) const { return rewriter_.op(id).outputs[0]; }

  void add(ir::OpId id) {
    const ir::Op& op = rewriter_.op(id);
    ops_.insert(id);
    inputs_.erase(op.outputs[0]);
    const bool has_table = op.kind == OpKind::byte_table;
    for (const TensorId input : has_table ? std::vector{op.inputs[0]} : op.inputs) {
      if (input == ir::kNoTensor) continue;
      const ir::Tensor& tensor = rewriter_.tensor(input);
      if (tensor.is_constant()) {
        is_valid_ &= tensor.shape.elems() == 1;  // the same number for all pixels and channels
      } else {
        is_valid_ &= tensor.shape == shape_ && !tensor.is_variable;
        inputs_.insert(input);
      }
    }
  }

  // Adds the producer of the input that is computed last: the other inputs may be among that op's inputs.
  bool grow() {
    ir::OpId last = -1;
    for (const TensorId input : inputs_) last = std::max(last, rewriter_.producer(input));
    if (last < 0 || !ir::is_elementwise(rewriter_.op(last).kind)) return false;
    add(last);
    return true;
  }

  Rewriter& rewriter_;
  const ir::Shape shape_;
  std::set<ir::OpId> ops_;
  std::set<TensorId> inputs_;
  bool is_valid_ = true;
};

// False for ops that a 1x1 depthwise convolution computes, which chips support better than a table.
bool needs_table(Rewriter& rewriter, ir::OpId id) {
  const ir::Op& op = rewriter.op(id);
  const auto computed =
      std::ranges::count_if(op.inputs, [&](TensorId t) { return t >= 0 && !rewriter.tensor(t).is_constant(); });
  if (is_any_of(op.kind, {OpKind::quantize, OpKind::relu, OpKind::relu6, OpKind::relu_n1_to_1})) return false;
  if (is_any_of(op.kind, {OpKind::add, OpKind::sub, OpKind::mul}) && computed < 2) return false;
  return rewriter.level(id) != Level::proven;
}

Result<Bytes> values_of(const Rewriter& rewriter, const Tree& tree, TensorId to) {
  std::vector<ir::Op> ops;
  for (const ir::OpId id : tree.ops) ops.push_back(rewriter.op(id));
  return ref::of_each_byte(rewriter.graph(), ops, tree.from, to);
}

std::string names_of(const Rewriter& rewriter, const Tree& tree) {
  std::string out;
  for (const ir::OpId id : tree.ops) out += (out.empty() ? "" : ", ") + std::string(ir::op_name(rewriter.op(id)));
  return out;
}

// The ops of the tree whose results are read only within the tree, and its root.
std::vector<ir::OpId> absorbed_by(const Rewriter& rewriter, const Tree& tree, ir::OpId root) {
  std::set<ir::OpId> gone = {root};
  for (auto id = tree.ops.rbegin(); id != tree.ops.rend(); ++id) {
    const TensorId to = rewriter.op(*id).outputs[0];
    const bool is_read = std::ranges::any_of(rewriter.readers(to), [&](ir::OpId one) { return !gone.contains(one); });
    if (!is_read && !rewriter.is_output(to)) gone.insert(*id);
  }
  return {gone.begin(), gone.end()};
}

// Records why the chip does not support the table of a tree, if it does not.
void write_down(Rewriter& rewriter, const Target& target, const Tree& tree, ir::OpId root) {
  if (std::ranges::none_of(tree.ops, [&](ir::OpId id) { return needs_table(rewriter, id); })) return;
  const TensorId to = rewriter.op(root).outputs[0];
  auto values = values_of(rewriter, tree, to);
  if (!values.ok()) return;
  ir::Graph graph = rewriter.graph();
  ir::Tensor table{.name = "table", .dtype = graph.tensor(to).dtype, .shape = {256}, .owner = {}};
  ir::set_constant(table, std::move(*values));
  ir::Op& op = graph.ops[static_cast<size_t>(root)];
  op.kind = OpKind::byte_table;
  op.attrs = ir::NoAttrs{};
  op.inputs = {tree.from, graph.add_tensor(std::move(table))};
  const npu::Support support = target.driver->supports(target.chip, graph, root);
  if (support.ok) return;
  Tried out{.sources = {}, .why = fmt::format("{} as one table: {}", names_of(rewriter, tree), support.reason)};
  for (const ir::OpId id : tree.ops) out.sources.push_back(rewriter.op(id).source_index);
  target.tried->push_back(std::move(out));
}

bool rewrite(Rewriter& rewriter, const Tree& tree, ir::OpId root) {
  if (std::ranges::none_of(tree.ops, [&](ir::OpId id) { return needs_table(rewriter, id); })) return false;
  const TensorId to = rewriter.op(root).outputs[0];
  auto values = values_of(rewriter, tree, to);
  if (!values.ok()) return false;  // no CPU kernel
  const ir::Tensor& result = rewriter.tensor(to);
  ir::Op op{.kind = OpKind::byte_table, .attrs = ir::NoAttrs{}};
  op.inputs = {tree.from, rewriter.add_constant(result.name + "/table", result.dtype, {256}, std::move(*values))};
  op.outputs = {to};
  std::vector<ir::OpId> gone = absorbed_by(rewriter, tree, root);
  // If the chip already supports all of them, one job instead of several is still better.
  const bool is_taken = std::ranges::all_of(gone, [&](ir::OpId id) { return rewriter.level(id) != Level::refused; });
  const bool is_fewer = is_taken && gone.size() > 1;
  return rewriter.replace({.ops = std::move(gone),
                           .kept = root,
                           .by = {std::move(op)},
                           .text = names_of(rewriter, tree) + ": one table of 256 bytes",
                           .must_help = !is_fewer});
}

}  // namespace

void fuse_byte_functions(ir::Graph& graph, const Target& target) {
  if (target.rewrites == nullptr || target.driver == nullptr) return;
  Rewriter rewriter(graph, target, "fuse_byte_functions");
  // Starts at the last op, so that the first tree found is the largest.
  for (auto id = static_cast<ir::OpId>(graph.ops.size()); id-- > 0;) {
    const ir::Op& op = rewriter.op(id);
    if (!ir::is_elementwise(op.kind) || op.outputs.size() != 1 || !is_computed_byte(rewriter.tensor(op.outputs[0])))
      continue;
    const std::vector<Tree> trees = Finder(rewriter, id).trees();
    const bool is_several = !trees.empty() && trees.back().ops.size() > 1;
    const auto is_taken = [&](const Tree& tree) {
      if (rewrite(rewriter, tree, id)) return true;
      if (is_several && &tree == &trees.back() && target.tried != nullptr) write_down(rewriter, target, tree, id);
      return false;
    };
    if (std::any_of(trees.rbegin(), trees.rend(), is_taken)) id = std::min(id, static_cast<ir::OpId>(graph.ops.size()));
  }
}

}  // namespace skillet::passes
