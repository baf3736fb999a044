// Session::compare_layers: which op of an NPU part differs from its CPU kernel.
#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <unordered_map>

#include "base/stop.h"
#include "graph/passes/divide/images.h"
#include "runtime/session_part.h"

namespace skillet::runtime {
namespace {

size_t at(int32_t id) { return static_cast<size_t>(id); }

template <typename T>
void count_differences(std::span<const uint8_t> a, std::span<const uint8_t> b, LayerDiff& diff) {
  diff.elems = static_cast<int64_t>(a.size() / sizeof(T));
  for (size_t offset = 0; offset + sizeof(T) <= a.size(); offset += sizeof(T)) {
    const auto x = static_cast<double>(load_le<T>(a.data() + offset));
    const auto y = static_cast<double>(load_le<T>(b.data() + offset));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ++diff.differing;
    diff.beyond_one += std::abs(x - y) <= 1 ? 0 : 1;
    diff.max_abs_diff = std::max(diff.max_abs_diff, std::abs(x - y));
  }
}

void compare(ir::DType dtype, std::span<const uint8_t> a, std::span<const uint8_t> b, LayerDiff& diff) {
  diff.compared = true;
  switch (dtype) {
    case ir::DType::int8: return count_differences<int8_t>(a, b, diff);
    case ir::DType::int16: return count_differences<int16_t>(a, b, diff);
    case ir::DType::int32: return count_differences<int32_t>(a, b, diff);
    case ir::DType::float32: return count_differences<float>(a, b, diff);
    default: return count_differences<uint8_t>(a, b, diff);
  }
}

using Spans = std::vector<std::span<uint8_t>>;

// Values that the CPU kernels compute for tensors of the model as it was before the passes.
class ModelTensors {
 public:
  // `graph`: after the passes.
  ModelTensors(const ir::Graph& model, const ir::Graph& graph)
      : model_(model), graph_(graph), producers_(ir::producers(model)), images_(model.tensors.size()) {
    find_images();
  }

  // True if the model computes the tensor, and it is still the same tensor or an image of it, and so are the tensors
  // that it is computed from: an operation whose input was reordered is compared in its rewritten form.
  bool judges(ir::TensorId id, const Spans& own) const {
    if (const auto image = batches_.find(id); image != batches_.end()) return is_of_same(image->second.batch, own);
    return makes(id) && is_of_same(id, own);
  }

  // `own`, by tensor: known bytes, from which the others are computed. Valid until the next call.
  Result<std::span<const uint8_t>> compute(ir::TensorId id, const Spans& own) {
    const auto image = batches_.find(id);
    const ir::TensorId whole = image == batches_.end() ? id : image->second.batch;
    if (whole != computed_ || image == batches_.end()) {
      bytes_.clear();
      Spans spans(model_.tensors.size());
      SK_TRY(make(whole, own, spans));
      computed_ = whole;
      result_ = spans[at(whole)];
    }
    if (image == batches_.end()) return result_;
    const size_t size = result_.size() / images_[at(whole)].size();
    return result_.subspan(image->second.image * size, size);
  }

 private:
  struct Image {
    ir::TensorId batch;
    size_t image;
  };

  // Tensors that passes reorder get another name.
  static bool is_same(const ir::Tensor& mine, const ir::Tensor& theirs) {
    return mine.name == theirs.name && mine.dtype == theirs.dtype && mine.shape == theirs.shape &&
           mine.quant == theirs.quant;
  }
  bool makes(ir::TensorId id) const {
    return at(id) < model_.tensors.size() && producers_[at(id)] >= 0 && is_same(model_.tensor(id), graph_.tensor(id));
  }

  // Finds batches that the graph computes image by image. Names that several tensors share are ignored.
  void find_images() {
    std::unordered_map<std::string_view, ir::TensorId> made;
    for (size_t i = model_.tensors.size(); i < graph_.tensors.size(); ++i) {
      const auto [at, is_first] = made.emplace(graph_.tensors[i].name, static_cast<ir::TensorId>(i));
      if (!is_first) at->second = ir::kNoTensor;
    }
    if (made.empty()) return;
    std::unordered_map<std::string_view, size_t> times;
    for (const ir::Tensor& tensor : model_.tensors) ++times[tensor.name];
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      ir::Tensor one = model_.tensors[i];
      if (producers_[i] < 0 || one.shape.rank() == 0 || one.shape[0] < 2 || times[one.name] > 1) continue;
      const int32_t count = std::exchange(one.shape.dims[0], 1);
      std::vector<ir::TensorId> images;
      for (int32_t image = 0; image < count; ++image) {
        one.name = passes::image_name(model_.tensors[i].name, image);
        const auto found = made.find(one.name);
        if (found == made.end() || found->second == ir::kNoTensor || !is_same(one, graph_.tensor(found->second))) break;
        images.push_back(found->second);
      }
      if (std::ssize(images) != count) continue;
      for (size_t image = 0; image < images.size(); ++image)
        batches_[images[image]] = {static_cast<ir::TensorId>(i), image};
      images_[i] = std::move(images);
    }
  }
  // True if each image of the batch was computed.
  bool has_images(ir::TensorId id, const Spans& own) const {
    const auto& images = images_[at(id)];
    return !images.empty() && std::ranges::none_of(images, [&](ir::TensorId one) { return own[at(one)].empty(); });
  }
  std::span<uint8_t> join_images(ir::TensorId id, const Spans& own) {
    Bytes& all = bytes_.emplace_back();
    for (const ir::TensorId one : images_[at(id)]) all.insert(all.end(), own[at(one)].begin(), own[at(one)].end());
    return all;
  }

  bool is_of_same(ir::TensorId id, const Spans& own) const {
    return std::ranges::all_of(model_.op(producers_[at(id)]).inputs, [&](ir::TensorId in) {
      if (in == ir::kNoTensor || producers_[at(in)] < 0) return true;
      if (!own[at(in)].empty()) return makes(in);
      return has_images(in, own) || is_of_same(in, own);
    });
  }

  Result<void> make(ir::TensorId id, const Spans& own, Spans& spans) {
    const ir::Op& op = model_.op(producers_[at(id)]);
    for (const ir::TensorId in : op.inputs) {
      if (in == ir::kNoTensor || !spans[at(in)].empty()) continue;
      const std::span<const uint8_t> constant = model_.tensor(in).data;
      if (!constant.empty()) {
        spans[at(in)] = {const_cast<uint8_t*>(constant.data()), constant.size()};  // kernels write outputs only
      } else if (!own[at(in)].empty() || producers_[at(in)] < 0) {
        spans[at(in)] = own[at(in)];
      } else if (has_images(in, own)) {
        spans[at(in)] = join_images(in, own);
      } else {
        SK_TRY(make(in, own, spans));
      }
    }
    for (const ir::TensorId out : op.outputs)
      spans[at(out)] = bytes_.emplace_back(Bytes(static_cast<size_t>(model_.tensor(out).bytes())));
    SK_TRY_ASSIGN(const std::unique_ptr<ref::Kernel> kernel, ref::prepare(model_, producers_[at(id)]));
    SK_TRY(check_stop());
    return kernel->run(spans);
  }

  const ir::Graph &model_, &graph_;
  std::vector<ir::OpId> producers_;
  std::vector<std::vector<ir::TensorId>> images_;    // of the graph, by tensor of the model
  std::unordered_map<ir::TensorId, Image> batches_;  // by tensor of the graph
  std::list<Bytes> bytes_;
  ir::TensorId computed_ = ir::kNoTensor;
  std::span<const uint8_t> result_;  // bytes of computed_
};

// Runs the CPU kernels on each op of the NPU's parts, in order. `known_` holds, by tensor of the whole graph, the best
// bytes: the NPU's own if kept, else what the kernels compute from the NPU's own earlier ones; `own_` only the first
// kind. `whole_`: for an op of the model that passes wrote as several, what the kernels compute from the NPU's inputs
// of the first of them.
class Comparison {
 public:
  // `model`: borrowed; null: not known.
  Comparison(const ir::Graph& graph, const Spans& spans, const ir::Graph* model)
      : graph_(graph), known_(spans), own_(spans), whole_(graph.tensors.size()) {
    if (model != nullptr) model_.emplace(*model, graph);
    for (size_t op = 0; op < graph.ops.size(); ++op)
      ops_[graph.ops[op].source_index].push_back(static_cast<ir::OpId>(op));
  }

  // Call in the order of the parts.
  Result<void> run(const passes::Partition& part, LoadedProgram& loaded, std::vector<LayerDiff>& diffs) {
    part_ = &part;
    for (size_t i = 0; i < part.op_map.size(); ++i) {
      if (written_as(part.op_map[i]) > 1) SK_TRY(run_whole(i));
      SK_TRY(run_alone(i, loaded, diffs));
    }
    return {};
  }

 private:
  int32_t source(ir::OpId op) const { return graph_.op(op).source_index; }
  int32_t written_as(ir::OpId op) const {
    return source(op) < 0 ? 1 : static_cast<int32_t>(ops_.at(source(op)).size());
  }

  std::span<uint8_t> keep(Bytes bytes) { return bytes_.emplace_back(std::move(bytes)); }

  Result<void> compute(ir::OpId op, Spans& spans) {
    for (const ir::TensorId id : graph_.op(op).outputs)
      spans[at(id)] = keep(Bytes(static_cast<size_t>(graph_.tensor(id).bytes())));
    SK_TRY_ASSIGN(const std::unique_ptr<ref::Kernel> kernel, ref::prepare(graph_, op));
    SK_TRY(check_stop());
    return kernel->run(spans);
  }

  Result<void> run_whole(size_t i) {
    const ir::Op& op = graph_.op(part_->op_map[i]);
    Spans spans = known_;
    for (const ir::TensorId id : op.inputs) {
      if (id != ir::kNoTensor && is_of_same(id, op.source_index)) spans[at(id)] = whole_[at(id)];
    }
    SK_TRY(compute(part_->op_map[i], spans));
    for (const ir::TensorId id : op.outputs) whole_[at(id)] = spans[at(id)];
    return {};
  }

  Result<void> run_alone(size_t i, LoadedProgram& loaded, std::vector<LayerDiff>& diffs) {
    const ir::Op& op = graph_.op(part_->op_map[i]);
    SK_TRY(compute(part_->op_map[i], known_));
    for (size_t out = 0; out < op.outputs.size(); ++out) {
      const ir::TensorId id = op.outputs[out];
      const ir::TensorId local = part_->graph.ops[i].outputs[out];
      LayerDiff one{.op = part_->op_map[i], .tensor = id, .written_as = written_as(part_->op_map[i])};
      one.is_last = one.written_as == 1 || ops_.at(op.source_index).back() == one.op;
      const bool is_of_model = model_ && model_->judges(id, own_);
      one.is_result = is_of_model || one.written_as == 1 || leaves(id, op.source_index);
      if (loaded.has(local)) {
        Bytes npu(known_[at(id)].size());
        SK_TRY(loaded.read(local, npu));
        const ir::DType dtype = graph_.tensor(id).dtype;
        compare(dtype, npu, known_[at(id)], one);
        LayerDiff whole = one;
        if (is_of_model) {
          SK_TRY_ASSIGN(const std::span<const uint8_t> wanted, model_->compute(id, own_));
          whole = {};
          compare(dtype, npu, wanted, whole);
        } else if (one.written_as > 1) {
          whole = {};
          compare(dtype, npu, whole_[at(id)], whole);
        }
        one.max_of_result = whole.max_abs_diff, one.differing_of_result = whole.differing;
        one.beyond_one_of_result = whole.beyond_one;
        own_[at(id)] = known_[at(id)] = keep(std::move(npu));
      }
      diffs.push_back(one);
    }
    return {};
  }

  // True if an op of this part that was written for that op of the model computes the tensor.
  bool is_of_same(ir::TensorId id, int32_t source_index) const {
    return std::ranges::any_of(part_->op_map, [&](ir::OpId op) {
      return source(op) == source_index && std::ranges::count(graph_.op(op).outputs, id) != 0;
    });
  }

  // True if the graph returns the tensor or another op reads it, including the CPU's share of the same op of the model.
  bool leaves(ir::TensorId id, int32_t source_index) const {
    if (std::ranges::count(graph_.outputs, id) != 0) return true;
    bool is_read = false;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const ir::Op& op = graph_.ops[i];
      if (std::ranges::count(op.inputs, id) == 0) continue;
      is_read = true;
      if (op.source_index != source_index || std::ranges::count(part_->op_map, static_cast<ir::OpId>(i)) == 0)
        return true;
    }
    return !is_read;
  }

  const ir::Graph& graph_;
  const passes::Partition* part_ = nullptr;
  Spans known_, own_, whole_;
  std::optional<ModelTensors> model_;
  std::map<int32_t, std::vector<ir::OpId>> ops_;  // by Op::source_index
  std::list<Bytes> bytes_;
};

}  // namespace

std::string LayerDiff::place() const {
  return written_as == 1 ? "" : fmt::format(", {} of {}", is_last ? "last" : "one", written_as);
}

Result<std::vector<LayerDiff>> Session::compare_layers(const ir::Graph* model) {
  SK_TRY(has_results());
  std::vector<LayerDiff> diffs;
  Comparison comparison(graph_, spans_, model);
  for (const auto& part : parts_) {
    if (part->loaded) SK_TRY(comparison.run(part->partition, *part->loaded, diffs));
  }
  return diffs;
}

}  // namespace skillet::runtime
