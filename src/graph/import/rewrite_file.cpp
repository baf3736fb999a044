#include "graph/import/rewrite_file.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/int_math.h"
#include "graph/import/custom_options.h"
#include "graph/import/import.h"
#include "graph/import/options.h"
#include "graph/import/tables.h"
#include "graph/ir/attrs_fields.h"

namespace skillet::tflite {
namespace {

using flatbuffers::Offset;
using flatbuffers::voffset_t;

// At least the alignment of anything in a file, and more than any runtime requires.
constexpr size_t kAlignment = 64;
constexpr size_t kFileMax = size_t{1} << 30;  // offsets have 31 bits

// Fields of tables, by their ids in the schema.
constexpr voffset_t field(int id) { return static_cast<voffset_t>(4 + 2 * id); }
constexpr int kModelFields = 5, kModelFieldsKnown = 16;        // later fields are kept as references
constexpr int kOperatorFields = 9, kOperatorFieldsKnown = 16;  // later fields would be lost

int8_t type_code(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::float32: return 0;
    case ir::DType::int32: return 2;
    case ir::DType::uint8: return 3;
    case ir::DType::int64: return 4;
    case ir::DType::boolean: return 6;
    case ir::DType::int16: return 7;
    case ir::DType::int8: return 9;
    default: return -1;  // passes make no tensors of other types
  }
}

// Op::source_index of operations of flat_file() that the first subgraph does not have.
constexpr int32_t kOfSubgraph = -2;

// Operators that import() replaces by others.
bool is_replaced(std::string_view name) {
  return name == "WHILE" || name == "IF" || name == "CALL" || name == "STABLEHLO_COMPOSITE" ||
         name == kTransposeConvBias;
}
bool holds_values(std::string_view name) {
  return name == "VAR_HANDLE" || name == "READ_VARIABLE" || name == "ASSIGN_VARIABLE" || name == "CALL_ONCE" ||
         name == "DENSIFY";
}
Error cannot_hold_values() {
  return error(ErrorCode::unsupported,
               "resource variables or sparse weights (VAR_HANDLE, CALL_ONCE, DENSIFY) cannot be written again");
}

class Writer {
 public:
  Writer(std::span<const uint8_t> file, const ir::Graph& before, const ir::Graph& after)
      : file_(file), before_(before), after_(after), model_(schema::GetModel(file.data())) {}

  Result<Bytes> run() {
    SK_TRY(check());
    old_graph_ = model_->subgraphs()->Get(0);
    place_file();
    SK_TRY(add_tensors());
    SK_TRY(add_operators());
    finish(add_graph());
    return Bytes(out_.GetBufferPointer(), out_.GetBufferPointer() + out_.GetSize());
  }

 private:
  // The importer has verified the tables.
  Result<void> check() const {
    if (file_.size() > kFileMax) return error(ErrorCode::unsupported, "a file of {} bytes is too large", file_.size());
    const auto* subgraph = model_->subgraphs()->Get(0);
    if (subgraph->operators() != nullptr && before_.ops.size() != subgraph->operators()->size())
      return cannot_hold_values();
    if (model_->buffers() == nullptr) return {};
    for (const schema::Buffer* buffer : *model_->buffers()) {
      if (buffer->offset() > 1)
        return error(ErrorCode::unsupported, "its constants follow its tables, at places that would change");
    }
    return {};
  }

  // Tables are written from the end: the old file is placed first, at the end, and new tables refer to it.
  void place_file() {
    out_.TrackMinAlign(kAlignment);
    out_.Pad(align_up(file_.size(), kAlignment) - file_.size());
    out_.PushBytes(file_.data(), file_.size());
    end_ = out_.GetSize();
  }
  template <typename T>
  Offset<T> old(const T* table) const {
    return Offset<T>(static_cast<flatbuffers::uoffset_t>(
        end_ - static_cast<size_t>(reinterpret_cast<const uint8_t*>(table) - file_.data())));
  }
  template <typename T>
  std::vector<Offset<T>> all_old(const flatbuffers::Vector<Offset<T>>* list) const {
    std::vector<Offset<T>> out;
    if (list == nullptr) return out;
    for (const T* one : *list) out.push_back(old(one));
    return out;
  }
  // A field that is an offset of any type; nothing if it is missing or points outside the file.
  std::optional<Offset<void>> old_field(const flatbuffers::Table* table, voffset_t at) const {
    const auto* address = reinterpret_cast<const uint8_t*>(table) + table->GetOptionalFieldOffset(at);
    if (table->GetOptionalFieldOffset(at) == 0) return std::nullopt;
    const size_t from = static_cast<size_t>(address - file_.data());
    if (from + 4 > file_.size() || load_le<uint32_t>(address) >= file_.size() - from) return std::nullopt;
    return Offset<void>(old(address + load_le<uint32_t>(address)).o);
  }

  // ---- tensors ----

  Result<void> add_tensors() {
    buffers_ = all_old(model_->buffers());
    tensors_ = all_old(old_graph_->tensors());
    for (size_t i = tensors_.size(); i < after_.tensors.size(); ++i) {
      const ir::Tensor& tensor = after_.tensors[i];
      if (type_code(tensor.dtype) < 0)
        return error(ErrorCode::internal, "a new tensor '{}' is {}", tensor.name, ir::dtype_name(tensor.dtype));
      tensors_.push_back(add_tensor(tensor));
    }
    return {};
  }
  Offset<schema::Tensor> add_tensor(const ir::Tensor& tensor) {
    uint32_t buffer = 0;
    if (tensor.is_constant()) {
      out_.ForceVectorAlignment(tensor.data.size(), 1, 16);
      const auto data = out_.CreateVector(tensor.data.data(), tensor.data.size());
      buffer = static_cast<uint32_t>(buffers_.size());
      buffers_.push_back(schema::CreateBuffer(out_, data));
    }
    Offset<schema::QuantizationParameters> quant;
    if (!tensor.quant.empty()) {
      const auto scales = out_.CreateVector(tensor.quant.scales);
      const auto zeros =
          out_.CreateVector(std::vector<int64_t>(tensor.quant.zero_points.begin(), tensor.quant.zero_points.end()));
      quant = schema::CreateQuantizationParameters(out_, 0, 0, scales, zeros, 0, tensor.quant.axis);
    }
    const auto shape = out_.CreateVector(tensor.shape.dims);
    const auto name = out_.CreateString(tensor.name);
    return schema::CreateTensor(out_, shape, type_code(tensor.dtype), buffer, name, quant);
  }

  // ---- operators ----

  Result<void> add_operators() {
    codes_ = all_old(model_->operator_codes());
    for (const ir::Op& op : after_.ops) {
      auto one = add_operator(op).with_context(ir::op_name(op));
      if (!one.ok()) return std::move(one).error();
      operators_.push_back(*one);
    }
    return {};
  }
  Result<Offset<schema::Operator>> add_operator(const ir::Op& op) {
    const auto source = static_cast<size_t>(op.source_index);
    if (op.source_index == kOfSubgraph)
      return add_new(op, out_.CreateVector(written_inputs(op)), out_.CreateVector(op.outputs));
    if (op.source_index < 0 || source >= before_.ops.size())
      return error(ErrorCode::internal, "is from no operation of the file");
    const ir::Op& model = before_.ops[source];
    const schema::Operator* from = old_graph_->operators()->Get(static_cast<flatbuffers::uoffset_t>(source));
    const bool same_options = op.kind == model.kind && op.opaque_name == model.opaque_name && op.attrs == model.attrs;
    // Compares with the file's operands: the importer replaces computed shapes by constants.
    const auto is_of_file = [](const std::vector<ir::TensorId>& ids, const flatbuffers::Vector<int32_t>* list) {
      return list != nullptr ? std::ranges::equal(ids, *list) : ids.empty();
    };
    if (same_options && is_of_file(op.inputs, from->inputs()) && is_of_file(op.outputs, from->outputs()))
      return old(from);
    const auto inputs = out_.CreateVector(written_inputs(op)), outputs = out_.CreateVector(op.outputs);
    if (!same_options) return add_new(op, inputs, outputs);
    for (int id = kOperatorFields; id < kOperatorFieldsKnown; ++id) {
      if (reinterpret_cast<const flatbuffers::Table*>(from)->GetOptionalFieldOffset(field(id)) != 0)
        return error(ErrorCode::unsupported, "has options that cannot be kept");
    }
    return with_operands(*from, inputs, outputs);
  }
  // The published kernels of these two ops count an omitted bias as an input, and require one for 8-bit weights: zeros.
  std::vector<ir::TensorId> written_inputs(const ir::Op& op) {
    std::vector<ir::TensorId> inputs = op.inputs;
    if ((op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) || op.input(2) != ir::kNoTensor)
      return inputs;
    inputs.resize(2);
    const ir::Tensor &in = after_.tensor(op.inputs[0]), &filter = after_.tensor(op.inputs[1]);
    if (!ir::is_8bit(in.dtype) || !ir::is_8bit(filter.dtype)) return inputs;
    const int32_t channels = after_.tensor(op.outputs[0]).shape.dims.back();
    ir::Tensor bias{.name = after_.tensor(op.outputs[0]).name + "/zeros", .dtype = ir::DType::int32, .owner = {}};
    const Bytes zeros(static_cast<size_t>(channels) * sizeof(int32_t), 0);
    bias.shape = {channels};
    bias.quant = filter.quant;
    bias.quant.axis = 0;
    for (float& scale : bias.quant.scales) scale *= in.quant.scale();
    std::ranges::fill(bias.quant.zero_points, 0);
    bias.data = zeros;
    inputs.push_back(static_cast<ir::TensorId>(tensors_.size()));
    tensors_.push_back(add_tensor(bias));
    return inputs;
  }
  using Ints = Offset<flatbuffers::Vector<int32_t>>;

  Offset<schema::Operator> with_operands(const schema::Operator& from, Ints inputs, Ints outputs) {
    schema::OperatorBuilder one(out_);
    one.add_opcode_index(from.opcode_index());
    one.add_inputs(inputs);
    one.add_outputs(outputs);
    one.add_builtin_options_type(from.builtin_options_type());
    if (from.builtin_options() != nullptr)
      one.add_builtin_options(Offset<void>(old(static_cast<const uint8_t*>(from.builtin_options())).o));
    if (from.custom_options() != nullptr) one.add_custom_options(old(from.custom_options()));
    one.add_custom_options_format(from.custom_options_format());
    if (from.mutating_variable_inputs() != nullptr)
      one.add_mutating_variable_inputs(old(from.mutating_variable_inputs()));
    if (from.intermediates() != nullptr) one.add_intermediates(old(from.intermediates()));
    return one.Finish();
  }

  Result<Offset<schema::Operator>> add_new(const ir::Op& op, Ints inputs, Ints outputs) {
    SK_TRY_ASSIGN(const NewOptions options, write_options(op));
    SK_TRY_ASSIGN(const uint32_t code, code_of(op.kind));
    schema::OperatorBuilder one(out_);
    one.add_opcode_index(code);
    one.add_inputs(inputs);
    one.add_outputs(outputs);
    one.add_builtin_options_type(options.type);
    one.add_builtin_options(options.table);
    return one.Finish();
  }

  struct NewOptions {
    schema::BuiltinOptions type = schema::BuiltinOptions::NONE;
    Offset<void> table;
  };
  Result<NewOptions> write_options(const ir::Op& op) {
    if (const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs); conv != nullptr && conv->rows)
      return error(ErrorCode::internal, "has its own padding of rows");
    if (const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs); conv != nullptr && conv->float_product)
      return error(ErrorCode::internal, "rounds its multiplier as FULLY_CONNECTED does");
    if (std::holds_alternative<ir::LstmAttrs>(op.attrs))
      return error(ErrorCode::internal, "the quantization of its hidden state cannot be written");
    switch (op.kind) {
#define OPTIONS(kind, Table, Params) \
  case ir::OpKind::kind:             \
    return new_table<schema::Table##Builder>(schema::BuiltinOptions::Table, op.as<ir::AttrsOf<ir::OpKind::kind>>());
#include "graph/import/options.def"
#undef OPTIONS
      case ir::OpKind::arg_max:
      case ir::OpKind::arg_min:
      case ir::OpKind::shape: return error(ErrorCode::internal, "its options cannot be written");  // the output's type
      default: break;
    }
    if (std::holds_alternative<ir::NoAttrs>(op.attrs)) return NewOptions{};
    return error(ErrorCode::internal, "its options cannot be written");
  }
  template <typename Table, typename A>
  NewOptions new_table(schema::BuiltinOptions type, const A& attrs) {
    Ints list;  // must be built before the table that refers to it
    ir::for_each_field(attrs, [&]<typename T>(std::string_view, const T& field, std::string_view) {
      if constexpr (std::is_same_v<T, std::vector<int32_t>>) list = out_.CreateVector(field);
    });
    Table table(out_);
    ir::give_fields(attrs, table, [&]<typename T>(const T& field) {
      if constexpr (std::is_same_v<T, std::vector<int32_t>>)
        return list;
      else if constexpr (std::is_enum_v<T>)
        return static_cast<int8_t>(field);
      else
        return field;
    });
    return {type, Offset<void>(table.Finish().o)};
  }

  // Uses the file's own code if its version is new enough.
  Result<uint32_t> code_of(ir::OpKind kind) {
    constexpr int32_t kVersion = 3;  // 8-bit types of both kinds, dilation, bias of TRANSPOSE_CONV
    const bool needs_version =
        kind == ir::OpKind::conv_2d || kind == ir::OpKind::depthwise_conv_2d || kind == ir::OpKind::transpose_conv;
    const int32_t version = needs_version ? kVersion : 1;
    const int32_t wanted = tflite_code(kind);
    if (wanted < 0) return error(ErrorCode::internal, "has no code");
    for (const auto& [number, index] : new_codes_) {
      if (number == wanted) return index;
    }
    for (flatbuffers::uoffset_t i = 0; i < model_->operator_codes()->size(); ++i) {
      const schema::OperatorCode& one = *model_->operator_codes()->Get(i);
      const int32_t number = number_of(one);
      if (number == wanted && one.version() >= version) return i;
    }
    new_codes_.emplace_back(wanted, static_cast<uint32_t>(codes_.size()));
    codes_.push_back(schema::CreateOperatorCode(out_, static_cast<int8_t>(std::min(wanted, 127)), 0, version, wanted));
    return new_codes_.back().second;
  }
  static int32_t tflite_code(ir::OpKind kind) {
    for (int32_t code = 0; !builtin_name(code).empty(); ++code) {
      if (ir::op_kind_from_tflite_code(code) == kind) return code;
    }
    return -1;
  }

  // ---- the model ----

  Offset<schema::SubGraph> add_graph() {
    const auto tensors = out_.CreateVector(tensors_);
    const auto operators = out_.CreateVector(operators_);
    schema::SubGraphBuilder graph(out_);
    graph.add_tensors(tensors);
    if (old_graph_->inputs() != nullptr) graph.add_inputs(old(old_graph_->inputs()));
    if (old_graph_->outputs() != nullptr) graph.add_outputs(old(old_graph_->outputs()));
    graph.add_operators(operators);
    if (old_graph_->name() != nullptr) graph.add_name(old(old_graph_->name()));
    return graph.Finish();
  }
  // False after flat_file() has put all subgraphs in their callers' places. Quantizers stumble over the others.
  bool needs_subgraphs() const {
    const auto is_left = [](const ir::Op& op) { return is_replaced(op.opaque_name); };
    if (std::ranges::none_of(before_.ops, is_left) || std::ranges::any_of(after_.ops, is_left)) return true;
    for (flatbuffers::uoffset_t i = 0; i < count(model_->signature_defs()); ++i)
      if (model_->signature_defs()->Get(i)->subgraph_index() != 0) return true;
    return false;
  }
  void finish(Offset<schema::SubGraph> graph) {
    auto graphs = all_old(model_->subgraphs());
    graphs[0] = graph;
    if (!needs_subgraphs()) graphs.resize(1);
    const auto subgraphs = out_.CreateVector(graphs);
    const auto codes = out_.CreateVector(codes_);
    const auto buffers = out_.CreateVector(buffers_);
    schema::ModelBuilder model(out_);
    model.add_version(model_->version());
    model.add_operator_codes(codes);
    model.add_subgraphs(subgraphs);
    if (model_->description() != nullptr) model.add_description(old(model_->description()));
    model.add_buffers(buffers);
    const auto* table = reinterpret_cast<const flatbuffers::Table*>(model_);
    for (int id = kModelFields; id < kModelFieldsKnown; ++id) {
      if (const auto kept = old_field(table, field(id))) out_.AddOffset(field(id), *kept);
    }
    schema::FinishModelBuffer(out_, model.Finish());
  }

  std::span<const uint8_t> file_;
  const ir::Graph &before_, &after_;
  const schema::Model* model_;
  const schema::SubGraph* old_graph_ = nullptr;
  flatbuffers::FlatBufferBuilder out_;
  size_t end_ = 0;  // offset of the old file's start from the end
  std::vector<Offset<schema::Buffer>> buffers_;
  std::vector<Offset<schema::Tensor>> tensors_;
  std::vector<Offset<schema::OperatorCode>> codes_;
  std::vector<std::pair<int32_t, uint32_t>> new_codes_;  // builtin code, index
  std::vector<Offset<schema::Operator>> operators_;
};

}  // namespace

Result<Bytes> rewrite_file(std::span<const uint8_t> file, const ir::Graph& before, const ir::Graph& after) {
  return Writer(file, before, after).run();
}

Result<Bytes> flat_file(Bytes file, const ir::Graph& graph) {
  const schema::Model& model = *schema::GetModel(file.data());  // verified by import()
  bool may_differ = false;
  for (flatbuffers::uoffset_t i = 0; i < count(model.operator_codes()); ++i) {
    const schema::OperatorCode& code = *model.operator_codes()->Get(i);
    may_differ |= is_replaced(builtin_name(number_of(code))) || is_replaced(view_of(code.custom_code()));
  }
  if (!may_differ) return file;
  SK_TRY_ASSIGN(const ir::Graph before, import(file, graph.name, {.as_hosts_have_it = true}));
  const auto left = [](const ir::Graph& one) {
    return std::ranges::count_if(one.ops, [](const ir::Op& op) { return is_replaced(op.opaque_name); });
  };
  if (left(before) == left(graph)) return file;
  for (const ir::Op& op : before.ops)
    if (holds_values(op.opaque_name)) return cannot_hold_values();
  const std::vector<ir::OpId> of_file = ir::producers(before);
  ir::Graph flat = graph;
  for (ir::Op& op : flat.ops) {
    const auto out = static_cast<size_t>(op.outputs.empty() ? ir::kNoTensor : op.outputs[0]);
    // A tensor of the file that a loop computed there is computed by an operation of its subgraph here.
    const bool is_of_file = out < of_file.size() && of_file[out] >= 0 && before.op(of_file[out]).kind == op.kind;
    op.source_index = is_of_file ? of_file[out] : kOfSubgraph;
  }
  return rewrite_file(file, before, flat);
}

}  // namespace skillet::tflite
