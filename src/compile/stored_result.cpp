#include "compile/stored_result.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <variant>

#include "base/archive.h"
#include "graph/ir/attrs_fields.h"

namespace skillet {

template <>
constexpr ir::DType kLastOf<ir::DType> = ir::DType::bfloat16;
template <>
constexpr ir::OpKind kLastOf<ir::OpKind> = ir::OpKind::opaque;
template <>
constexpr ir::Activation kLastOf<ir::Activation> = ir::Activation::sign_bit;
template <>
constexpr ir::Padding kLastOf<ir::Padding> = ir::Padding::valid;
template <>
constexpr npu::Remedy kLastOf<npu::Remedy> = static_cast<npu::Remedy>(npu::kRemedyNames.size() - 1);

namespace compile {
namespace {

// Operands of an operation in a part on the NPU, where the graph has others: see Compiled::graph.
struct InPart {
  ir::OpId op = 0;
  std::vector<ir::TensorId> inputs;
};

}  // namespace
}  // namespace compile

// Found by their arguments, so not in a namespace without a name.
static void visit(Archive& archive, ir::RowPads& pads) { archive(pads.top, pads.bottom); }
static void visit(Archive& archive, ir::Op& op) {
  archive(op.kind, op.opaque_name, op.inputs, op.outputs, op.source_index);
  if (archive.reads()) op.attrs = ir::default_attrs(op.kind);
  size_t index = op.attrs.index();
  archive(index);
  if (index != op.attrs.index()) return archive.fail();
  std::visit(
      [&](auto& attrs) { ir::for_each_field(attrs, [&](const char*, auto& field, const char*) { archive(field); }); },
      static_cast<ir::AttrsOfAnyKind&>(op.attrs));
}
static void visit(Archive& archive, compile::InPart& one) { archive(one.op, one.inputs); }
static void visit(Archive& archive, passes::Rewrite& one) {
  archive(one.pass, one.source, one.absorbed, one.text, one.off, one.is_for_chip);
}
static void visit(Archive& archive, passes::WeightChange& one) {
  archive(one.op, one.inputs, one.scales_before, one.scales, one.worst, one.expected);
}
static void visit(Archive& archive, compile::Times& one) {
  archive(one.npu_us, one.start_us, one.transfer_us, one.cpu_us, one.crossing_bytes, one.parts);
}
static void visit(Archive& archive, compile::Span& one) { archive(one.first, one.last); }
static void visit(Archive& archive, compile::Alternative& one) { archive(one.on_npu, one.times); }
static void visit(Archive& archive, compile::OffloadChoice& one) { archive(one.ops, one.alternatives, one.chosen); }
static void visit(Archive& archive, compile::NetworkTimes& one) { archive(one.what, one.times, one.is_chosen); }

namespace compile {
namespace {

size_t at(int32_t id) { return static_cast<size_t>(id); }

// A tensor without its contents.
void describe(Archive& archive, ir::Tensor& tensor) {
  archive(tensor.name, tensor.dtype, tensor.shape.dims, tensor.quant.scales, tensor.quant.zero_points,
          tensor.quant.axis, tensor.is_variable, tensor.planned_at);
}

bool is_same(const ir::Tensor& a, const ir::Tensor& b) {
  return a.data.data() == b.data.data() && a.data.size() == b.data.size() && a.name == b.name && a.dtype == b.dtype &&
         a.shape == b.shape && a.quant == b.quant && a.is_variable == b.is_variable && a.planned_at == b.planned_at;
}

// Writes and reads tensors of graphs that were made from `model`.
class Tensors {
 public:
  Tensors(const ir::Graph& model, Bytes& stored) : model_(model), to_(&stored) {
    for (size_t i = 0; i < model.tensors.size(); ++i) blocks_.try_emplace(model.tensors[i].data.data(), Place{true, i});
  }
  Tensors(const ir::Graph& model, const SharedBytes& stored) : model_(model), from_(stored) {}

  void transfer(Archive& archive, std::vector<ir::Tensor>& tensors) {
    size_t count = tensors.size();
    archive(count);
    if (archive.reads()) tensors.clear();
    for (size_t i = 0; i < count && archive.ok(); ++i) {
      bool is_of_model = !archive.reads() && i < model_.tensors.size() && is_same(tensors[i], model_.tensors[i]);
      archive(is_of_model);
      if (archive.reads()) {
        if (is_of_model && i >= model_.tensors.size()) return archive.fail();
        tensors.push_back(is_of_model ? model_.tensors[i] : ir::Tensor{});
      }
      if (is_of_model) continue;
      describe(archive, tensors[i]);
      archive.reads() ? read_contents(archive, tensors[i]) : write_contents(archive, tensors[i]);
    }
  }

 private:
  struct Place {
    bool is_of_model = false;
    size_t begin = 0;  // a tensor of the model, or a byte of the stored ones
  };

  void write_contents(Archive& archive, const ir::Tensor& tensor) {
    bool has_any = tensor.data.data() != nullptr;
    const auto [found, is_new] = blocks_.try_emplace(tensor.data.data(), Place{false, to_->size()});
    Place place = found->second;
    size_t size_bytes = tensor.data.size();
    archive(has_any, place.is_of_model, place.begin, size_bytes);
    if (!has_any) return;
    if (is_new) to_->insert(to_->end(), tensor.data.begin(), tensor.data.end());
    const size_t most = place.is_of_model ? model_.tensors[place.begin].data.size() : to_->size() - place.begin;
    if (size_bytes > most) archive.fail();
  }

  void read_contents(Archive& archive, ir::Tensor& tensor) {
    bool has_any = false;
    Place place;
    size_t size_bytes = 0;
    archive(has_any, place.is_of_model, place.begin, size_bytes);
    if (!has_any) return;
    if (place.is_of_model && place.begin >= model_.tensors.size()) return archive.fail();
    const ir::Tensor* const owner = place.is_of_model ? &model_.tensors[place.begin] : nullptr;
    const std::span<const uint8_t> all = owner != nullptr ? owner->data : std::span<const uint8_t>(from_);
    const size_t begin = owner != nullptr ? 0 : place.begin;
    if (begin > all.size() || size_bytes > all.size() - begin) return archive.fail();
    tensor.data = all.subspan(begin, size_bytes);
    tensor.owner = owner != nullptr ? owner->owner : from_.owner();
  }

  const ir::Graph& model_;
  Bytes* to_ = nullptr;
  SharedBytes from_;
  std::map<const uint8_t*, Place> blocks_;  // by first byte
};

// Inputs and outputs are the model's.
void transfer(Archive& archive, ir::Graph& graph, Tensors& tensors, const ir::Graph& model) {
  archive(graph.name, graph.ops, graph.has_free_sizes);
  tensors.transfer(archive, graph.tensors);
  if (archive.reads()) graph.inputs = model.inputs, graph.outputs = model.outputs;
}

// Without its graph, which its operations determine, and without programs: each read one is empty.
void transfer(Archive& archive, Part& part) {
  bool has_program = part.program.has_value();
  size_t bands = part.bands.size();
  archive(part.partition.on_npu, part.partition.op_map, part.partition.graph.name, has_program, bands, part.is_piece,
          part.note, part.is_weighed, part.key);
  constexpr size_t kBandsMax = 64;  // cores of a chip
  const size_t programs = bands + (has_program ? 1 : 0);
  if (bands > kBandsMax || (programs != 0 && !part.partition.on_npu)) return archive.fail();
  if (!archive.reads()) return;
  if (has_program) part.program.emplace();
  part.bands.resize(bands);
}

void transfer(Archive& archive, OpPlace& place, const Target& target) {
  archive(place.on_npu, place.reason, place.unproven, place.part, place.note, place.remedy, place.verified);
  std::vector<std::string> names;
  for (const npu::Assumption* one : place.stands_on) names.emplace_back(one->name);
  archive(names);
  if (!archive.reads() || target.driver == nullptr) return;
  for (const std::string& name : names) {
    const auto known = target.driver->assumptions(target.chip);
    const auto found = std::ranges::find(known, name, &npu::Assumption::name);
    if (found == known.end()) return archive.fail();
    place.stands_on.push_back(&*found);
  }
}

using Operands = std::vector<InPart>;

Operands other_operands(const Compiled& compiled) {
  Operands out;
  for (const Part& part : compiled.parts) {
    const passes::Partition& one = part.partition;
    for (size_t i = 0; i < one.graph.ops.size(); ++i) {
      std::vector<ir::TensorId> inputs = one.graph.ops[i].inputs;
      for (ir::TensorId& id : inputs)
        if (id != ir::kNoTensor) id = one.tensor_map[at(id)];
      if (inputs != compiled.graph.op(one.op_map[i]).inputs) out.push_back({one.op_map[i], std::move(inputs)});
    }
  }
  return out;
}

template <typename T, typename Each>
void transfer_each(Archive& archive, std::vector<T>& values, Each each) {
  size_t count = values.size();
  archive(count);
  if (archive.reads()) values.clear();
  for (size_t i = 0; i < count && archive.ok(); ++i) each(archive.reads() ? values.emplace_back() : values[i]);
}

void transfer(Archive& archive, Compiled& compiled, Operands& operands, Tensors& tensors, const ir::Graph& model,
              const Target& target) {
  transfer(archive, compiled.graph, tensors, model);
  archive(operands);
  transfer_each(archive, compiled.parts, [&](Part& part) { transfer(archive, part); });
  transfer_each(archive, compiled.ops, [&](OpPlace& place) { transfer(archive, place, target); });
  archive(compiled.weight_changes, compiled.rewrites, compiled.choices, compiled.network, compiled.model_ops);
  bool has_compared = compiled.compared.has_value();
  archive(has_compared);
  if (!has_compared) return;
  if (archive.reads()) compiled.compared.emplace();
  transfer(archive, *compiled.compared, tensors, model);
}

// ---- checks of what was read

bool are_ops(std::span<const ir::OpId> ops, const ir::Graph& graph) {
  return std::ranges::all_of(ops, [&](ir::OpId op) { return op >= 0 && at(op) < graph.ops.size(); });
}

// Each operation is in one part, in order.
bool covers(const std::vector<Part>& parts, const ir::Graph& graph) {
  std::vector<bool> seen(graph.ops.size(), false);
  size_t count = 0;
  for (const Part& part : parts) {
    const std::vector<ir::OpId>& ops = part.partition.op_map;
    if (!are_ops(ops, graph) || std::ranges::adjacent_find(ops, std::greater_equal()) != ops.end()) return false;
    for (const ir::OpId op : ops) {
      if (seen[at(op)]) return false;
      seen[at(op)] = true;
      ++count;
    }
  }
  return count == graph.ops.size();
}

bool is_sound(const OffloadChoice& choice, const ir::Graph& graph) {
  const auto is_inside = [&](const Alternative& one) {
    return std::ranges::all_of(
        one.on_npu, [&](const Span& span) { return span.first < span.last && span.last <= choice.ops.size(); });
  };
  return !choice.ops.empty() && are_ops(choice.ops, graph) && choice.alternatives.size() > 1 &&
         choice.chosen < choice.alternatives.size() && std::ranges::all_of(choice.alternatives, is_inside);
}

// Hosts number operations; code finds them by these numbers.
bool has_sources_of(const ir::Graph& graph, const std::set<int32_t>& sources) {
  return std::ranges::all_of(graph.ops, [&](const ir::Op& op) { return sources.contains(op.source_index); });
}

Result<void> check(const Compiled& compiled, const ir::Graph& model) {
  SK_TRY(ir::verify(compiled.graph));
  if (compiled.compared) SK_TRY(ir::verify(*compiled.compared));
  std::set<int32_t> sources = {-1};
  for (const ir::Op& op : model.ops) sources.insert(op.source_index);
  const auto is_as_in_model = [&](ir::TensorId id) { return is_same(compiled.graph.tensor(id), model.tensor(id)); };
  const auto is_place = [&](const OpPlace& place) { return place.part < compiled.parts.size(); };
  const auto is_rewrite = [&](const passes::Rewrite& one) { return sources.contains(one.source); };
  const auto is_tensor = [&](ir::TensorId id) {
    return id >= ir::kNoTensor && id < std::ssize(compiled.graph.tensors);
  };
  const auto is_change = [&](const passes::WeightChange& one) {
    return are_ops({&one.op, 1}, compiled.graph) && std::ranges::all_of(one.inputs, is_tensor);
  };
  const ir::Graph& of_choices = compiled.compared ? *compiled.compared : compiled.graph;
  const auto is_choice = [&](const OffloadChoice& one) { return is_sound(one, of_choices); };
  const bool is_good =
      std::ranges::all_of(model.inputs, is_as_in_model) && std::ranges::all_of(model.outputs, is_as_in_model) &&
      covers(compiled.parts, compiled.graph) && compiled.ops.size() == compiled.graph.ops.size() &&
      std::ranges::all_of(compiled.ops, is_place) && has_sources_of(compiled.graph, sources) &&
      (!compiled.compared || has_sources_of(*compiled.compared, sources)) &&
      std::ranges::all_of(compiled.rewrites, is_rewrite) && std::ranges::all_of(compiled.weight_changes, is_change) &&
      std::ranges::all_of(compiled.choices, is_choice) && compiled.model_ops == model.ops.size();
  return is_good ? Result<void>() : error(ErrorCode::malformed, "its parts or operations contradict the model");
}

// Makes the graphs of parts and bands again, as compile() made them.
Result<void> add_graphs(Compiled& compiled, const Operands& operands) {
  std::optional<ir::Graph> changed;  // as it was divided
  if (!operands.empty()) {
    changed = compiled.graph;
    for (const InPart& one : operands) {
      if (!are_ops({&one.op, 1}, *changed)) return error(ErrorCode::malformed, "it has operands of op {}", one.op);
      changed->ops[at(one.op)].inputs = one.inputs;
    }
    SK_TRY(ir::verify(*changed));
  }
  std::vector<passes::Partition> parts;
  std::vector<std::string> names;
  for (Part& part : compiled.parts) {
    names.push_back(std::move(part.partition.graph.name));
    part.partition.graph = {};
    parts.push_back(std::move(part.partition));
  }
  passes::build_graphs(changed ? *changed : compiled.graph, parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = compiled.parts[i];
    part.partition = std::move(parts[i]);
    part.partition.graph.name = std::move(names[i]);
    if (part.bands.empty()) continue;
    std::vector<passes::Band> bands = passes::split_bands(part.partition.graph, static_cast<int>(part.bands.size()));
    if (bands.size() != part.bands.size()) return error(ErrorCode::malformed, "its bands contradict the model");
    for (size_t k = 0; k < bands.size(); ++k) part.bands[k].rows = std::move(bands[k]);
  }
  return {};
}

bool is_same_graph(const ir::Graph& a, const ir::Graph& b) {
  const auto same_data = [](const ir::Tensor& one, const ir::Tensor& other) {
    return std::ranges::equal(one.data, other.data);
  };
  return structure_of(a) == structure_of(b) && std::ranges::equal(a.tensors, b.tensors, same_data);
}

// Whether all graphs are the same: programs name their tensors and operations by number.
bool has_graphs_of(const Compiled& made, const Compiled& original) {
  for (size_t i = 0; i < original.parts.size(); ++i) {
    const Part &a = made.parts[i], &b = original.parts[i];
    if (!is_same_graph(a.partition.graph, b.partition.graph) || a.partition.tensor_map != b.partition.tensor_map)
      return false;
    for (size_t k = 0; k < b.bands.size(); ++k) {
      const passes::Band &one = a.bands[k].rows, &other = b.bands[k].rows;
      if (!is_same_graph(one.graph, other.graph) || one.rows != other.rows || one.gives != other.gives) return false;
    }
  }
  return is_same_graph(made.graph, original.graph);
}

}  // namespace

Bytes structure_of(const ir::Graph& graph) {
  Bytes out;
  Archive archive(out);
  auto& written = const_cast<ir::Graph&>(graph);  // an archive changes nothing that it writes
  archive(written.name, written.ops, written.inputs, written.outputs, written.has_free_sizes);
  size_t count = graph.tensors.size();
  archive(count);
  for (ir::Tensor& tensor : written.tensors) {
    describe(archive, tensor);
    bool has_any = tensor.data.data() != nullptr;
    size_t size_bytes = tensor.data.size();
    archive(has_any, size_bytes);
  }
  return out;
}

Result<StoredResult> store(const Compiled& compiled, const ir::Graph& model, const Target& target) {
  StoredResult out;
  Archive archive(out.bytes);
  Tensors tensors(model, out.constants);
  auto& written = const_cast<Compiled&>(compiled);  // an archive changes nothing that it writes
  Operands operands = other_operands(compiled);
  transfer(archive, written, operands, tensors, model, target);
  if (!archive.ok() || compiled.graph.inputs != model.inputs || compiled.graph.outputs != model.outputs)
    return error(ErrorCode::unsupported, "its graph cannot be stored");
  SK_TRY_ASSIGN(const Compiled again, restore(out.bytes, SharedBytes(out.constants), model, target));
  if (!has_graphs_of(again, compiled)) return error(ErrorCode::unsupported, "its parts cannot be made again");
  return out;
}

Result<Compiled> restore(std::span<const uint8_t> bytes, const SharedBytes& constants, const ir::Graph& model,
                         const Target& target) {
  Compiled out;
  Operands operands;
  Archive archive(bytes);
  Tensors tensors(model, constants);
  transfer(archive, out, operands, tensors, model, target);
  if (!archive.ok() || !archive.is_at_end()) return error(ErrorCode::malformed, "its parts are cut off or impossible");
  SK_TRY(check(out, model));
  SK_TRY(add_graphs(out, operands));
  return out;
}

}  // namespace compile
}  // namespace skillet
