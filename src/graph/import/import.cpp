#include "graph/import/import.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "base/log.h"
#include "base/magic.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "graph/import/appended_fields.h"
#include "graph/import/budget.h"
#include "graph/import/control_flow.h"
#include "graph/import/custom_options.h"
#include "graph/import/options.h"
#include "graph/import/planned_memory.h"
#include "graph/import/sparse.h"
#include "graph/import/tables.h"
#include "graph/import/variables.h"
#include "graph/ir/rules.h"
#include "graph/ir/settle.h"
#include "graph/ref/ref.h"

namespace skillet::tflite {
namespace {

using ir::DType;
using ir::TensorId;

constexpr std::array<std::string_view, 210> kBuiltinNames = {
#define BUILTIN(code, name) name,
#include "graph/import/builtin_codes.def"
#undef BUILTIN
};
constexpr int32_t kCustomCode = 32;
// Resolved while the file is read: the graph has its result.
constexpr int32_t kDensify = 124;

// In the order of the schema's TensorType.
constexpr std::array kTypes = {
    DType::float32, DType::float16,   DType::int32,  DType::uint8,   DType::int64,      DType::string, DType::boolean,
    DType::int16,   DType::complex64, DType::int8,   DType::float64, DType::complex128, DType::uint64, DType::resource,
    DType::variant, DType::uint32,    DType::uint16, DType::int4,    DType::bfloat16,
};

constexpr size_t kMarkEnd = 8, kStartBytes = 512;

// Formats that people mistake for a model that we can read, and what to do about it.
std::string_view other_format(std::span<const uint8_t> file) {
  static constexpr Magic kRows[] = {
      {0, "PK\3\4", "a zip archive: unpack it, or convert the model in it (PyTorch, Keras) to .tflite"},
      {0, "\x1F\x8B", "compressed by gzip: unpack it first"},
      {257, "ustar", "a tar archive: unpack it first"},
      {0, "\x89HDF", "a HDF5 file, as Keras writes them: convert it with tf.lite.TFLiteConverter"},
      {0, "version https://git-lfs", "a pointer of git-lfs, not the file itself: git lfs pull"},
      {0, "<!", "a web page, not the file itself"},
      {0, "<html", "a web page, not the file itself"},
      {0, "RKNN", "an RKNN model, which only the vendor's driver reads: use the model it was made from"},
      {0, "\x80\2", "a Python pickle (PyTorch): convert it to .tflite"},
      {0, "\x08", "perhaps ONNX: use the skillet command or the provider (onnxruntime.md)"}};
  return name_of_magic(file, kRows);
}

Result<void> check_mark(std::span<const uint8_t> file) {
  if (file.empty()) return error(ErrorCode::malformed, "is empty");
  if (file.size() >= kMarkEnd && schema::ModelBufferHasIdentifier(file.data())) return {};
  const std::string_view other = other_format(file);
  return error(ErrorCode::malformed, "not a TensorFlow Lite model ({})", other.empty() ? "no TFL3 mark" : other);
}

class Importer {
 public:
  Importer(std::shared_ptr<const Bytes> file, std::string name, ImportOptions options)
      : file_(std::move(file)),
        options_(std::move(options)),
        budget_(*file_),
        dense_left_bytes_((1U << 20U) + 64 * file_->size()) {
    graph_.name = printable(name);
  }

  Result<ir::Graph> run() {
    SK_TRY(open());
    SK_TRY(choose_subgraph());
    SK_TRY(read_subgraph());
    SK_TRY(set_initial_values());
    add_empty_constants();
    add_planned_memory(*model_, graph_);
    SK_TRY(infer_shapes());
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const auto id = static_cast<ir::OpId>(i);
      SK_TRY_IN_CONTEXT(ir::settle_filter(graph_, id), ir::describe_op(graph_, id));
    }
    SK_TRY(ir::verify(graph_));
    SK_TRY(check_size());
    return std::move(graph_);
  }

 private:
  Result<void> read_subgraph() {
    for (size_t i = 0; i < count(subgraph_->tensors()); ++i) {
      SK_TRY_IN_CONTEXT(import_tensor(*subgraph_->tensors()->Get(static_cast<flatbuffers::uoffset_t>(i))),
                        fmt::format("tensor {}", i));
    }
    SK_TRY_ASSIGN(const std::vector<TensorId> inputs, budget_.copy(subgraph_->inputs()));
    // A tensor that is listed twice is one input.
    std::set<TensorId> named;
    std::ranges::copy_if(inputs, std::back_inserter(graph_.inputs),
                         [&](TensorId id) { return named.insert(id).second; });
    SK_TRY_ASSIGN(graph_.outputs, budget_.copy(subgraph_->outputs()));
    SK_TRY(set_input_shapes());
    for (size_t i = 0; i < count(subgraph_->operators()); ++i) {
      SK_TRY_IN_CONTEXT(import_op(*subgraph_->operators()->Get(static_cast<flatbuffers::uoffset_t>(i))),
                        fmt::format("op {}", i));
    }
    return {};
  }

  // A small file must not be able to claim all of the machine's memory.
  Result<void> check_size() const {
    constexpr uint64_t kAlways = 1ULL << 30, kPerByte = 1024;
    const uint64_t limit = kAlways + kPerByte * file_->size();
    uint64_t total = 0;
    for (const ir::Tensor& tensor : graph_.tensors) total += static_cast<uint64_t>(tensor.bytes());
    if (total <= limit) return {};
    return error(ErrorCode::unsupported, "its tensors take {} bytes; a file of {} bytes may take {}", total,
                 file_->size(), limit);
  }

  Result<void> open() {
    // Newer files may have buffers after the FlatBuffers part, which itself has 31-bit offsets.
    const size_t checked_bytes = std::min<size_t>(file_->size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
    SK_TRY(check_mark(*file_));
    flatbuffers::Verifier verifier(file_->data(), checked_bytes);
    if (!schema::VerifyModelBuffer(verifier)) {
      return error(ErrorCode::malformed, "the model file is damaged or truncated ({} bytes)", file_->size());
    }
    model_ = schema::GetModel(file_->data());
    if (model_->version() != 3) return error(ErrorCode::unsupported, "schema version {}, not 3", model_->version());
    if (count(model_->subgraphs()) == 0) return error(ErrorCode::malformed, "the model has no subgraph");
    variables_.emplace(*model_, graph_);
    return {};
  }

  Result<void> choose_subgraph() {
    const auto* signatures = model_->signature_defs();
    std::vector<std::string> names;
    uint32_t chosen = 0;
    for (flatbuffers::uoffset_t i = 0; i < count(signatures); ++i) {
      SK_TRY_ASSIGN(names.emplace_back(), budget_.copy(signatures->Get(i)->signature_key()));
      if (names.back() == options_.signature) chosen = signatures->Get(i)->subgraph_index();
    }
    if (!options_.signature.empty() && std::ranges::find(names, options_.signature) == names.end()) {
      return error(ErrorCode::invalid_argument, "no signature '{}'; there {}", printable(options_.signature),
                   names.empty() ? "are none" : fmt::format("is {}", fmt::join(names, ", ")));
    }
    if (chosen >= count(model_->subgraphs())) {
      return error(ErrorCode::malformed, "signature '{}' belongs to subgraph {} of {}", printable(options_.signature),
                   chosen, count(model_->subgraphs()));
    }
    subgraph_ = model_->subgraphs()->Get(chosen);
    if (options_.signature.empty() && names.size() > 1) {
      log::message(log::Level::warning, "{}: it has signatures {}; the first subgraph is used (--signature)",
                   graph_.name, fmt::join(names, ", "));
    }
    return {};
  }

  Result<void> set_input_shapes() {
    for (const TensorId id : graph_.inputs) {
      if (id < 0 || static_cast<size_t>(id) >= graph_.tensors.size()) return {};  // verify() reports it
    }
    std::set<TensorId> given;
    for (const std::string& text : options_.input_shapes) {
      SK_TRY_ASSIGN(const TensorId id, set_input_shape(text));
      given.insert(id);
    }
    for (const TensorId id : graph_.inputs) {
      if (!given.contains(id)) warn_of_free_sizes(id);
    }
    return {};
  }

  // Sets the shape of the tensor in `text`, a row of ImportOptions::input_shapes, and returns the tensor.
  Result<TensorId> set_input_shape(const std::string& text) {
    const size_t mark = text.rfind('=');
    const std::string name = mark == std::string::npos ? "" : text.substr(0, mark);
    const auto is_named = [&](TensorId id) { return name.empty() || graph_.tensor(id).name == name; };
    const auto found = std::ranges::find_if(graph_.inputs, is_named);
    if (found == graph_.inputs.end() || (name.empty() && graph_.inputs.size() > 1)) {
      std::vector<std::string> names;
      for (const TensorId id : graph_.inputs) names.push_back(graph_.tensor(id).name);
      return error(ErrorCode::invalid_argument, "input shape '{}': NAME=SHAPE with one of {}", printable(text),
                   fmt::join(names, ", "));
    }
    ir::Shape shape;
    std::istringstream dims(mark == std::string::npos ? text : text.substr(mark + 1));
    for (std::string dim; std::getline(dims, dim, 'x');) {
      const auto value = parse_number<int32_t>(dim);
      if (!value || *value < 0)
        return error(ErrorCode::invalid_argument, "input shape '{}': '{}' is no size", printable(text), printable(dim));
      shape.dims.push_back(*value);
    }
    ir::Tensor& tensor = graph_.tensor(*found);
    if (shape.rank() != tensor.shape.rank() || text.ends_with('x')) {
      return error(ErrorCode::invalid_argument, "input shape '{}': '{}' is {}, of {} sizes", printable(text),
                   tensor.name, tensor.shape.to_string(), tensor.shape.rank());
    }
    tensor.shape = std::move(shape);
    return *found;
  }

  // Files have a 1 for a free size. For the first dimension, the batch, 1 is usually wanted.
  void warn_of_free_sizes(TensorId id) {
    const auto* signature = subgraph_->tensors()->Get(static_cast<flatbuffers::uoffset_t>(id))->shape_signature();
    const ir::Tensor& tensor = graph_.tensor(id);
    if (signature == nullptr || signature->size() != static_cast<size_t>(tensor.shape.rank())) return;
    std::string text;
    bool is_free = false;
    for (flatbuffers::uoffset_t i = 0; i < signature->size(); ++i) {
      is_free |= i > 0 && signature->Get(i) < 0;
      graph_.has_free_sizes |= i > 0 && signature->Get(i) < 0 && tensor.shape[static_cast<int>(i)] == 1;
      text += (i == 0 ? "" : "x") + (signature->Get(i) < 0 ? "?" : std::to_string(signature->Get(i)));
    }
    if (!is_free) return;
    log::message(log::Level::warning, "{}: input '{}' has free sizes, {}, and is read as {} (--input-shape)",
                 graph_.name, tensor.name, text, tensor.shape.to_string());
  }

  Result<void> import_tensor(const schema::Tensor& from) {
    ir::Tensor tensor;
    SK_TRY_ASSIGN(tensor.name, budget_.copy(from.name()));
    const std::string context = fmt::format("'{}'", tensor.name);
    SK_TRY(import_type_and_shape(from, tensor).with_context(context));
    SK_TRY(import_quant(from.quantization(), tensor).with_context(context));
    tensor.is_variable = from.is_variable();
    SK_TRY(import_contents(from, tensor).with_context(context));
    if (tensor.is_variable && tensor.data.data() != nullptr)
      return error(ErrorCode::malformed, "'{}' is a variable with contents", tensor.name);
    if (from.sparsity() != nullptr) SK_TRY(make_dense(*from.sparsity(), tensor).with_context(context));
    graph_.add_tensor(std::move(tensor));
    return {};
  }

  Result<void> import_type_and_shape(const schema::Tensor& from, ir::Tensor& tensor) {
    if (from.type() < 0 || static_cast<size_t>(from.type()) >= kTypes.size()) {
      return error(ErrorCode::unsupported, "element type {} is not known", static_cast<int>(from.type()));
    }
    tensor.dtype = kTypes[static_cast<size_t>(from.type())];
    SK_TRY_ASSIGN(tensor.shape.dims, budget_.copy(from.shape()));
    for (int32_t dim : tensor.shape.dims) {
      if (dim < 0) return error(ErrorCode::malformed, "shape {} has a negative dimension", tensor.shape.to_string());
    }
    return {};
  }

  // Accepts harmless oddities: ranges without scales, scales of floats, the axis of a single scale.
  Result<void> import_quant(const schema::QuantizationParameters* from, ir::Tensor& tensor) {
    constexpr uint8_t kCustomDetails = 1;  // the plain scales are present too
    if (from == nullptr || !ir::is_integer(tensor.dtype)) return {};
    if (from->details_type() > kCustomDetails) {
      return error(ErrorCode::unsupported, "quantization of kind {} is not known", int{from->details_type()});
    }
    SK_TRY_ASSIGN(tensor.quant.scales, budget_.copy(from->scale()));
    const size_t channels = tensor.quant.scales.size(), zero_points = count(from->zero_point());
    if (channels == 0) return {};
    if (zero_points > 1 && zero_points != channels) {
      return error(ErrorCode::malformed, "{} scales but {} zero points", channels, zero_points);
    }
    for (size_t i = 0; i < channels; ++i) {
      // The FlatBuffers verifier only checks that lists are aligned to 4 bytes.
      const size_t at = zero_points == 1 ? 0 : i;
      const int64_t zero_point = zero_points == 0 ? 0 : load_le<int64_t>(from->zero_point()->Data() + 8 * at);
      if (zero_point < INT32_MIN || zero_point > INT32_MAX) {
        return error(ErrorCode::malformed, "zero point {} is out of range", zero_point);
      }
      tensor.quant.zero_points.push_back(static_cast<int32_t>(zero_point));
    }
    if (channels > 1 && tensor.shape.rank() != 1) tensor.quant.axis = from->quantized_dimension();
    return {};
  }

  // Points `tensor` at its part of the file. Buffer 0 or an empty one means no contents.
  Result<void> import_contents(const schema::Tensor& from, ir::Tensor& tensor) {
    if (from.external_buffer() != 0) return error(ErrorCode::unsupported, "its contents are in another file");
    if (from.buffer() == 0) return {};
    if (from.buffer() >= count(model_->buffers())) {
      return error(ErrorCode::malformed, "buffer {} is outside the {} buffers", from.buffer(),
                   count(model_->buffers()));
    }
    const schema::Buffer& buffer = *model_->buffers()->Get(from.buffer());
    std::span<const uint8_t> data;
    if (count(buffer.data()) != 0) {
      data = {buffer.data()->data(), buffer.data()->size()};
    } else if (buffer.offset() > 1 && buffer.size() > 0) {  // 1 is a placeholder of the writer
      if (buffer.offset() > file_->size() || buffer.size() > file_->size() - buffer.offset()) {
        return error(ErrorCode::malformed, "buffer {} at {} with {} bytes is outside the file of {} bytes",
                     from.buffer(), buffer.offset(), buffer.size(), file_->size());
      }
      data = std::span(*file_).subspan(buffer.offset(), buffer.size());
    }
    if (data.empty()) return {};
    tensor.data = data;
    tensor.owner = file_;
    return {};
  }

  // The file has the nonzero elements and their positions.
  Result<void> make_dense(const schema::SparsityParameters& how, ir::Tensor& tensor) {
    SK_TRY(ir::checked_elems(tensor.shape));
    SK_TRY_ASSIGN(Bytes bytes, dense_contents(how, tensor, tensor.data, dense_left_bytes_));
    dense_left_bytes_ -= bytes.size();
    ir::set_constant(tensor, std::move(bytes));
    return {};
  }

  Result<void> import_op(const schema::Operator& from) {
    if (from.opcode_index() >= count(model_->operator_codes())) {
      return error(ErrorCode::malformed, "operation code {} is outside the {} codes", from.opcode_index(),
                   count(model_->operator_codes()));
    }
    const schema::OperatorCode& code = *model_->operator_codes()->Get(from.opcode_index());
    const int32_t number = number_of(code);
    if (number < 0) return error(ErrorCode::malformed, "builtin operation {}", number);
    ir::Op op;
    // Not the index in the file, where handles of variables and similar operations count too.
    op.source_index = static_cast<int32_t>(graph_.ops.size());
    if (!options_.as_hosts_have_it) {
      SK_TRY_ASSIGN(const bool done, resolve(number, from));
      if (done) return {};
    }
    const auto kind = number == kCustomCode ? ir::op_kind_from_custom_name(view_of(code.custom_code()))
                                            : ir::op_kind_from_tflite_code(number);
    if (kind && !must_stay_opaque(*kind, from)) op.kind = *kind;
    if (op.kind == ir::OpKind::opaque) {
      SK_TRY_INTO(op.opaque_name, opaque_name(number, code));
      if (const auto call = subgraph_call(number, from)) calls_.emplace(op.source_index, *call);
    }
    const std::string context(ir::op_name(op));
    SK_TRY(import_operands(from, op).with_context(context));
    auto attrs = read_attrs(op.kind, from).with_context(context);
    if (!attrs) return std::move(attrs).error();
    op.attrs = std::move(attrs).value();
    if (op.opaque_name == kTransposeConvBias && !options_.as_hosts_have_it)
      take_transpose_conv_bias(from.custom_options(), graph_, op);
    add_hidden_quant(from, op);
    if (std::string newer = why_not_of_version(op, code.version()); options_.newer_fields != nullptr && !newer.empty())
      options_.newer_fields->emplace(op.source_index, std::move(newer));
    graph_.add_op(std::move(op));
    return {};
  }

  // Returns true if `from` does not become an operation of the graph: it handles a variable, or unpacks weights.
  Result<bool> resolve(int32_t number, const schema::Operator& from) {
    if (number != kDensify || count(from.inputs()) != 1 || count(from.outputs()) != 1)
      return variables_->take(number, from);
    const TensorId in = from.inputs()->Get(0), out = from.outputs()->Get(0);
    const auto is_there = [&](TensorId id) { return id >= 0 && static_cast<size_t>(id) < graph_.tensors.size(); };
    if (!is_there(in) || !is_there(out) || !graph_.tensor(in).is_constant()) return false;
    ir::Tensor& dense = graph_.tensor(out);
    if (dense.dtype != graph_.tensor(in).dtype)
      return error(ErrorCode::malformed, "DENSIFY: {} of {}", ir::describe_tensor(graph_, out),
                   ir::dtype_name(graph_.tensor(in).dtype));
    dense.shape = graph_.tensor(in).shape;
    dense.data = graph_.tensor(in).data;
    dense.owner = graph_.tensor(in).owner;
    return true;
  }

  // Reads the initial values of variables that CALL_ONCE sets.
  Result<void> set_initial_values() {
    for (const uint32_t subgraph : variables_->initial_subgraphs()) {
      Importer initial(file_, graph_.name, {});
      const auto set = [&]() -> Result<void> {
        SK_TRY(initial.read_section(subgraph));
        return variables_->set_initial(*initial.variables_);
      };
      SK_TRY(set().with_context(fmt::format("subgraph {}", subgraph)));
    }
    return {};
  }

  Result<void> read_section(uint32_t subgraph) {
    SK_TRY(open());
    subgraph_ = model_->subgraphs()->Get(subgraph);
    SK_TRY(read_subgraph());
    add_empty_constants();
    return ir::check_structure(graph_);
  }

  Result<void> infer_shapes() {
    if (calls_.empty() || options_.as_hosts_have_it) return ir::infer_shapes(graph_, ref::compute);
    const auto read = [&](uint32_t subgraph) -> Result<Section> {
      Importer importer(file_, graph_.name, {});
      SK_TRY(importer.read_section(subgraph));
      return Section{std::move(importer.graph_), std::move(importer.calls_)};
    };
    return expand_control_flow(graph_, calls_, count(model_->subgraphs()), read, ref::compute);
  }

  // The quantization of an LSTM's hidden state is stored in the fifth of its intermediate tensors, which no op
  // computes.
  void add_hidden_quant(const schema::Operator& from, ir::Op& op) const {
    constexpr flatbuffers::uoffset_t kHidden = 4;
    auto* attrs = std::get_if<ir::LstmAttrs>(&op.attrs);
    if (attrs == nullptr || count(from.intermediates()) <= kHidden) return;
    const int32_t id = from.intermediates()->Get(kHidden);
    if (id < 0 || static_cast<size_t>(id) >= graph_.tensors.size()) return;
    attrs->hidden_scale = graph_.tensor(id).quant.scale();
    attrs->hidden_zero_point = graph_.tensor(id).quant.zero_point();
  }

  Result<std::string> opaque_name(int32_t number, const schema::OperatorCode& code) {
    if (number == kCustomCode && count(code.custom_code()) != 0) return budget_.copy(code.custom_code());
    const std::string_view name = builtin_name(number);
    return name.empty() ? fmt::format("BUILTIN_{}", number) : std::string(name);
  }

  Result<void> import_operands(const schema::Operator& from, ir::Op& op) {
    SK_TRY_ASSIGN(op.inputs, budget_.copy(from.inputs()));
    SK_TRY_ASSIGN(op.outputs, budget_.copy(from.outputs()));
    return {};
  }

  // An empty list (the axes of a squeeze, the shape of a scalar) has no bytes in the file, but is constant.
  void add_empty_constants() {
    const std::vector<ir::OpId> producer = ir::producers(graph_);
    std::vector<bool> given(graph_.tensors.size());
    for (TensorId id : graph_.inputs) {
      if (id >= 0 && static_cast<size_t>(id) < given.size()) given[static_cast<size_t>(id)] = true;
    }
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      ir::Tensor& tensor = graph_.tensors[i];
      const auto& dims = tensor.shape.dims;
      const bool is_index = tensor.dtype == DType::int32 || tensor.dtype == DType::int64;
      const bool empty = is_index && std::find(dims.begin(), dims.end(), 0) != dims.end();
      if (empty && producer[i] < 0 && !given[i] && !tensor.is_variable && !tensor.is_constant()) {
        ir::set_constant(tensor, {});
      }
    }
  }

  std::shared_ptr<const Bytes> file_;
  ImportOptions options_;
  Budget budget_;
  const schema::Model* model_ = nullptr;
  const schema::SubGraph* subgraph_ = nullptr;
  size_t dense_left_bytes_;  // remaining bytes for sparse tensors
  std::optional<Variables> variables_;
  std::map<ir::OpId, SubgraphCall> calls_;
  ir::Graph graph_;
};

Result<ir::Graph> import_shared(std::shared_ptr<const Bytes> file, std::string name, ImportOptions options) {
  auto graph = Importer(std::move(file), std::move(name), std::move(options)).run();
  if (graph && log::debug_flag("ir")) log::write(log::Level::info, ir::print(*graph));
  return graph;
}

}  // namespace

std::string_view builtin_name(int32_t code) {
  return code >= 0 && static_cast<size_t>(code) < kBuiltinNames.size() ? kBuiltinNames[static_cast<size_t>(code)]
                                                                       : std::string_view{};
}

Result<ir::Graph> import(std::span<const uint8_t> file, std::string name, ImportOptions options) {
  auto context = fmt::format("model '{}'", name);
  return import_shared(std::make_shared<const Bytes>(file.begin(), file.end()), std::move(name), std::move(options))
      .with_context(context);
}

Result<ir::Graph> import_file(const std::string& path, ImportOptions options) {
  // Checks the start first, so that a large file of another format is not read.
  SK_TRY_ASSIGN(const Bytes start, read_file_start(path, kStartBytes));
  SK_TRY(check_mark(start).with_context(path));
  SK_TRY_ASSIGN(Bytes bytes, read_file(path));
  return import_read(std::move(bytes), path, std::move(options));
}

Result<ir::Graph> import_read(Bytes file, const std::string& path, ImportOptions options) {
  std::string name = std::filesystem::path(path).stem().string();
  return import_shared(std::make_shared<const Bytes>(std::move(file)), std::move(name), std::move(options))
      .with_context(path);
}

}  // namespace skillet::tflite
