// Divides an op over several images into one op per image, between SPLIT and CONCATENATION of the batch; the CPU runs
// these two if the chip does not. Between two divided ops nothing is joined.
#include <algorithm>
#include <map>
#include <utility>

#include "base/is_any_of.h"
#include "graph/passes/divide/images.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

using ir::OpKind;

constexpr int32_t kImagesMax = 8;

// Values of a constant; empty if it is not int32.
std::vector<int32_t> ints_of(const ir::Graph& graph, ir::TensorId id) {
  const ir::Tensor& tensor = graph.tensor(id);
  if (!tensor.is_constant() || tensor.dtype != ir::DType::int32) return {};
  return tensor.values<int32_t>();
}

bool keeps_images_apart(const ir::Graph& graph, const ir::Op& op) {
  if (ir::is_elementwise(op.kind)) return true;
  if (op.kind == OpKind::transpose_conv) return ints_of(graph, op.inputs[0]).size() == 4;
  if (is_any_of(op.kind, {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::average_pool_2d, OpKind::max_pool_2d,
                          OpKind::resize_bilinear, OpKind::resize_nearest_neighbor, OpKind::depth_to_space,
                          OpKind::space_to_depth}))
    return true;
  switch (op.kind) {
    case OpKind::concatenation: {
      const int32_t axis = op.as<ir::ConcatAttrs>().axis, rank = graph.tensor(op.outputs[0]).shape.rank();
      return axis != 0 && axis != -rank;
    }
    case OpKind::mean: {
      const auto axes = ints_of(graph, op.inputs[1]);
      const int32_t rank = graph.tensor(op.inputs[0]).shape.rank();
      return !axes.empty() && std::ranges::none_of(axes, [&](int32_t axis) { return axis == 0 || axis == -rank; });
    }
    case OpKind::pad:
    case OpKind::pad_v2:
    case OpKind::mirror_pad: {
      const auto margins = ints_of(graph, op.inputs[1]);
      return margins.size() > 1 && margins[0] == 0 && margins[1] == 0;
    }
    default: return false;
  }
}

// True for computed images of bytes or int16.
bool is_computed_image(const ir::Tensor& tensor) {
  return is_computed_byte(tensor) || (tensor.dtype == ir::DType::int16 && !tensor.is_constant() &&
                                      !tensor.is_variable && tensor.quant.scales.size() == 1);
}

// Number of images that the op processes; 0: the op cannot be divided.
int32_t images_of(const ir::Graph& graph, const ir::Op& op) {
  if (op.outputs.size() != 1 || touches_variable(graph, op) || !keeps_images_apart(graph, op)) return 0;
  const ir::Tensor& out = graph.tensor(op.outputs[0]);
  const bool is_mean = op.kind == OpKind::mean;  // may drop the dimensions of an image
  const int32_t rank = is_mean ? graph.tensor(op.inputs[0]).shape.rank() : out.shape.rank();
  const int32_t images = rank == 4 && out.shape.rank() > 0 ? out.shape[0] : 0;
  if (images < 2 || images > kImagesMax || !is_computed_image(out)) return 0;
  const bool is_weighted = is_any_of(op.kind, {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::transpose_conv});
  for (const ir::TensorId id : op.inputs) {
    if (id == ir::kNoTensor) continue;
    const ir::Tensor& one = graph.tensor(id);
    const bool has_batch = one.shape.rank() == rank && one.shape[0] == images;
    if (one.is_constant() ? has_batch && !is_weighted : !has_batch || !is_computed_image(one)) return 0;
  }
  return images;
}

ir::Tensor image_of(const ir::Tensor& batch) {
  ir::Tensor one = batch;
  one.shape.dims[0] = 1;
  return one;
}

// The constant operand of an op for one image: the output shape of a TRANSPOSE_CONV names the number of images.
ir::Tensor constant_of_image(const ir::Op& op, size_t input, const ir::Tensor& tensor) {
  ir::Tensor one = tensor;
  if (op.kind != OpKind::transpose_conv || input != 0) return one;
  Bytes shape(tensor.data.begin(), tensor.data.end());
  store_le<int32_t>(shape.data(), 1);
  ir::set_constant(one, std::move(shape));
  return one;
}

bool takes_all(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "split_batches");
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const npu::Support support = rewriter.support(static_cast<ir::OpId>(i));
    if (rewriter.level_of(support) != Level::refused) continue;
    rewriter.write_down(support, graph.ops[i], {graph.ops[i].source_index});
    return false;
  }
  return true;
}

// True if the chip supports the op for one image, directly or after the other passes.
bool takes_one(const ir::Graph& graph, const ir::Op& op, const Target& target) {
  ir::Graph alone;
  std::map<ir::TensorId, ir::TensorId> own;
  const auto add = [&](ir::TensorId& id, size_t input) {
    if (id == ir::kNoTensor) return;
    const auto [at, added] = own.try_emplace(id, ir::kNoTensor);
    const ir::Tensor& tensor = graph.tensor(id);
    if (added)
      at->second = alone.add_tensor(tensor.is_constant() ? constant_of_image(op, input, tensor) : image_of(tensor));
    if (added && !tensor.is_constant() && id != op.outputs[0]) alone.inputs.push_back(at->second);
    id = at->second;
  };
  ir::Op copy = op;
  for (size_t i = 0; i < copy.inputs.size(); ++i) add(copy.inputs[i], i);
  add(copy.outputs[0], copy.inputs.size());
  alone.outputs = copy.outputs;
  alone.add_op(std::move(copy));
  if (!ir::verify(alone).ok()) return false;
  std::vector<Rewrite> rewrites;
  Target trial = target;
  trial.rewrites = &rewrites;
  trial.weight_changes = nullptr;
  trial.kept = {};
  for (const Pass& pass : exact_passes()) {
    if (pass.whole != split_batches) pass.run(alone, trial);
  }
  return takes_all(alone, trial);
}

class Splitter {
 public:
  Splitter(ir::Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  void run() {
    std::vector<int32_t> images;
    Rewriter rewriter(graph_, target_, "split_batches");
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const ir::Op& op = graph_.ops[i];
      const int32_t count = images_of(graph_, op);
      const bool wanted =
          count > 0 && rewriter.level(static_cast<ir::OpId>(i)) == Level::refused && takes_one(graph_, op, target_);
      images.push_back(wanted ? count : 0);
    }
    if (std::ranges::all_of(images, [](int32_t count) { return count == 0; })) return;
    const auto readers = ir::consumers(graph_);
    const std::vector<ir::Op> old = std::move(graph_.ops);
    for (size_t i = 0; i < old.size(); ++i) {
      if (images[i] == 0) {
        ops_.push_back(old[i]);
        continue;
      }
      divide(old[i], images[i]);
      const ir::TensorId whole = old[i].outputs[0];
      const bool is_read = std::ranges::any_of(readers[static_cast<size_t>(whole)], [&](ir::OpId reader) {
        return images[static_cast<size_t>(reader)] == 0;
      });
      if (is_read || std::ranges::find(graph_.outputs, whole) != graph_.outputs.end()) join(old[i]);
    }
    graph_.ops = std::move(ops_);
  }

 private:
  const std::vector<ir::TensorId>& new_pieces(ir::TensorId whole, int32_t count) {
    std::vector<ir::TensorId>& pieces = pieces_[whole];
    for (int32_t i = 0; i < count; ++i) {
      ir::Tensor one = image_of(graph_.tensor(whole));
      one.name = image_name(one.name, i);
      pieces.push_back(graph_.add_tensor(std::move(one)));
    }
    return pieces;
  }
  const std::vector<ir::TensorId>& pieces_of(ir::TensorId whole, int32_t count, int32_t source) {
    if (const auto at = pieces_.find(whole); at != pieces_.end()) return at->second;
    ir::Tensor axis{.name = graph_.tensor(whole).name + "/axis", .dtype = ir::DType::int32, .shape = {}, .owner = {}};
    ir::set_constant(axis, Bytes(4, 0));
    ir::Op split{.kind = OpKind::split, .attrs = ir::SplitAttrs{count}, .inputs = {graph_.add_tensor(std::move(axis))}};
    split.inputs.push_back(whole);
    split.source_index = source;
    split.outputs = new_pieces(whole, count);
    ops_.push_back(std::move(split));
    return pieces_[whole];
  }

  void divide(const ir::Op& op, int32_t count) {
    std::vector<ir::Op> images(static_cast<size_t>(count), op);
    for (size_t input = 0; input < op.inputs.size(); ++input) {
      const ir::TensorId id = op.inputs[input];
      if (id == ir::kNoTensor) continue;
      if (graph_.tensor(id).is_constant()) {
        if (op.kind != OpKind::transpose_conv || input != 0) continue;
        const ir::TensorId shape = graph_.add_tensor(constant_of_image(op, input, graph_.tensor(id)));
        for (ir::Op& image : images) image.inputs[input] = shape;
        continue;
      }
      const std::vector<ir::TensorId> pieces = pieces_of(id, count, op.source_index);
      for (size_t i = 0; i < images.size(); ++i) images[i].inputs[input] = pieces[i];
    }
    const std::vector<ir::TensorId> results = new_pieces(op.outputs[0], count);
    for (size_t i = 0; i < images.size(); ++i) images[i].outputs = {results[i]};
    ops_.insert(ops_.end(), images.begin(), images.end());
    target_.rewrites->push_back({"split_batches",
                                 op.source_index,
                                 {},
                                 fmt::format("{} of {} images becomes one for each", ir::op_name(op), count)});
  }
  void join(const ir::Op& op) {
    ir::Op join{.kind = OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 0}, .inputs = pieces_[op.outputs[0]]};
    join.outputs = op.outputs;
    join.source_index = op.source_index;
    ops_.push_back(std::move(join));
  }

  ir::Graph& graph_;
  const Target& target_;
  std::vector<ir::Op> ops_;
  std::map<ir::TensorId, std::vector<ir::TensorId>> pieces_;
};

}  // namespace

void split_batches(ir::Graph& graph, const Target& target) {
  if (target.rewrites != nullptr && target.driver != nullptr) Splitter(graph, target).run();
}

}  // namespace skillet::passes
