#include "frontend/onnx/file.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "base/parse_number.h"
#include "base/text.h"
#include "frontend/onnx/wire.h"

namespace skillet::onnx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostDims = 16;
constexpr int64_t kMostElems = int64_t{1} << 30;
constexpr int kMostDepth = 8;

template <typename To, typename From>
Bytes stored_as(const std::vector<From>& values) {
  Bytes out(values.size() * sizeof(To));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto one = static_cast<To>(values[i]);
    std::memcpy(out.data() + i * sizeof(To), &one, sizeof(To));
  }
  return out;
}

class Reader {
 public:
  Reader(Bytes file, std::string folder) : folder_(std::move(folder)) {
    out_.contents = std::make_shared<Contents>();
    out_.contents->file = std::move(file);
  }

  Result<ModelFile> run() {
    const Bytes& file = out_.contents->file;
    pbf_reader model(reinterpret_cast<const char*>(file.data()), file.size());
    std::vector<pbf_reader> graphs;
    while (model.next()) {
      switch (model.tag()) {
        case field::kGraph: graphs.push_back(message(model)); break;
        case field::kOpsets: read_opset(message(model)); break;
        default: model.skip();
      }
    }
    if (graphs.size() != 1 || opsets_.empty())
      return error(ErrorCode::malformed, "it is not an ONNX model: it has {} graphs and {} operator sets",
                   graphs.size(), opsets_.size());
    SK_TRY(read_graph(graphs[0]));
    return std::move(out_);
  }

 private:
  void read_opset(pbf_reader from) {
    std::string domain;
    int64_t version = 0;
    while (from.next()) {
      if (from.tag() == field::kDomain)
        domain = text(from);
      else if (from.tag() == field::kVersion)
        version = integer(from);
      else
        from.skip();
    }
    opsets_[domain == "ai.onnx" ? "" : domain] = static_cast<int>(std::clamp<int64_t>(version, 0, 1 << 20));
  }

  // Order: constants, declarations of the graph, nodes. A node may only read values before it.
  Result<void> read_graph(pbf_reader graph) {
    std::vector<pbf_reader> nodes, inputs, outputs;
    while (graph.next()) {
      switch (graph.tag()) {
        case field::kNode: nodes.push_back(message(graph)); break;
        case field::kInput: inputs.push_back(message(graph)); break;
        case field::kOutput: outputs.push_back(message(graph)); break;
        case field::kInitializer: SK_TRY(read_initializer(message(graph))); break;
        case field::kValueInfo: declared_.push_back(message(graph)); break;
        case field::kSparse: return error(ErrorCode::unsupported, "it has sparse constants, which are not supported");
        default: graph.skip();
      }
    }
    for (const pbf_reader& one : inputs) SK_TRY(read_input(one));
    for (const pbf_reader& one : nodes) SK_TRY(read_node(one));
    for (const pbf_reader& one : declared_) SK_TRY(declare(one));
    for (const pbf_reader& one : outputs) SK_TRY(read_output(one));
    return {};
  }

  int add(const std::string& name) {
    const auto [known, is_new] = ids_.try_emplace(name, static_cast<int>(out_.model.values.size()));
    if (is_new) out_.model.values.push_back({.name = name, .dims = {}, .data = {}});
    if (is_new && depth_ > 0) new_ids_.push_back(name);
    return known->second;
  }
  // False: there is such a value already.
  bool make(const std::string& name) {
    const bool is_new = made_.insert(name).second;
    if (is_new && depth_ > 0) new_made_.push_back(name);
    return is_new;
  }
  Value& value(int id) { return out_.model.values[static_cast<size_t>(id)]; }

  Result<void> read_initializer(pbf_reader from) {
    SK_TRY_ASSIGN(Value read, read_tensor(from));
    if (ids_.contains(read.name))
      return error(ErrorCode::malformed, "there are two constants '{}'", printable(read.name));
    make(read.name);
    value(add(read.name)) = std::move(read);
    return {};
  }

  Result<Value> read_tensor(pbf_reader from) {
    Value out{.name = {}, .dims = std::vector<int64_t>(), .data = {}, .is_constant = true};
    std::vector<int64_t> numbers;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::map<std::string, std::string> external;
    std::optional<protozero::data_view> raw;
    int64_t type = 0, location = 0;
    while (from.next()) {
      switch (from.tag()) {
        case field::kDims: append(from, *out.dims); break;
        case field::kType: type = integer(from); break;
        case field::kFloatData: append(from, floats); break;
        case field::kInt32Data:
        case field::kInt64Data:
        case field::kUint64Data: append(from, numbers); break;
        case field::kDoubleData: append(from, doubles, &pbf_reader::get_packed_double, wide_number); break;
        case field::kTensorName: out.name = text(from); break;
        case field::kRaw: raw = view(from); break;
        case field::kExternal: external.insert(entry_of(message(from))); break;
        case field::kLocation: location = integer(from); break;
        default: from.skip();
      }
    }
    const auto context = [&] { return fmt::format("constant '{}'", printable(out.name)); };
    const auto dtype = dtype_of(type);
    if (!dtype) return error(ErrorCode::unsupported, "{}: its type {} is not supported", context(), type);
    out.dtype = *dtype;
    if (location == 1) {
      auto beside = read_external(external);
      if (!beside.ok()) return std::move(beside).error().with_context(context());
      out.data = *beside;
    } else if (raw) {
      out.data = {reinterpret_cast<const uint8_t*>(raw->data()), raw->size()};
    } else if (*dtype == ir::DType::float32) {
      out.data = out_.keep(stored_as<float>(floats));
    } else if (*dtype == ir::DType::float64) {
      out.data = out_.keep(stored_as<double>(doubles));
    } else {
      out.data = out_.keep(integers_as(*dtype, numbers));
    }
    auto fits = check_size(out);
    if (!fits.ok()) return std::move(fits).error().with_context(context());
    return out;
  }

  static Bytes integers_as(ir::DType dtype, const std::vector<int64_t>& numbers) {
    switch (ir::dtype_bytes(dtype)) {
      case 1: return stored_as<uint8_t>(numbers);
      case 2: return stored_as<uint16_t>(numbers);
      case 4: return stored_as<uint32_t>(numbers);
      default: return stored_as<uint64_t>(numbers);
    }
  }

  // For types without a size in bytes only the dimensions are checked.
  static Result<void> check_size(Value& one) {
    if (one.dims->size() > kMostDims) return error(ErrorCode::malformed, "it has {} dimensions", one.dims->size());
    int64_t elems = 1;
    for (const int64_t dim : *one.dims) {
      if (dim < 0 || dim > kMostElems || (elems *= std::max<int64_t>(dim, 1)) > kMostElems)
        return error(ErrorCode::malformed, "its dimension {} is not a size", dim);
    }
    if (std::ranges::count(*one.dims, 0) != 0) elems = 0;
    const int bytes = ir::dtype_bytes(one.dtype);
    if (bytes != 0 && std::ssize(one.data) != elems * bytes)
      return error(ErrorCode::malformed, "it has {} bytes, not {}", one.data.size(), elems * bytes);
    return {};
  }

  static std::pair<std::string, std::string> entry_of(pbf_reader from) {
    std::pair<std::string, std::string> out;
    while (from.next()) {
      if (from.tag() == field::kKey)
        out.first = text(from);
      else if (from.tag() == field::kValue)
        out.second = text(from);
      else
        from.skip();
    }
    return out;
  }

  // Reads only files in the model's folder, even through links.
  Result<std::span<const uint8_t>> read_external(const std::map<std::string, std::string>& entries) {
    const auto of = [&](const char* key) {
      const auto found = entries.find(key);
      return found == entries.end() ? std::string() : found->second;
    };
    const std::string location = of("location");
    const auto refused = [&](std::string_view what) {
      return error(ErrorCode::malformed, "its contents are in '{}', {}", printable(location), what);
    };
    if (folder_.empty()) return refused("and files beside the model are not read here");
    std::error_code failed;
    const fs::path home = fs::canonical(folder_, failed);
    if (failed) return refused("and the model's folder cannot be found");
    const fs::path path = fs::weakly_canonical(home / location, failed);
    const auto [end, unused] = std::ranges::mismatch(home, path);
    if (failed || location.empty() || end != home.end() || path == home)
      return refused("which is not a file in the model's folder");
    auto& bytes = out_.contents->beside;
    auto known = bytes.find(path.string());
    if (known == bytes.end()) {
      SK_TRY_ASSIGN(Bytes read, read_file(path.string()));
      known = bytes.emplace(path.string(), std::move(read)).first;
    }
    const auto offset = parse_size(of("offset"), 0), length = parse_size(of("length"), std::nullopt);
    const size_t size = known->second.size();
    if (!offset || *offset > size || (!of("length").empty() && !length) || (length && *length > size - *offset))
      return refused(fmt::format("which has {} bytes; offset '{}', length '{}'", size, printable(of("offset")),
                                 printable(of("length"))));
    return std::span<const uint8_t>(known->second).subspan(*offset, length.value_or(size - *offset));
  }

  static std::optional<size_t> parse_size(const std::string& text, std::optional<size_t> otherwise) {
    return text.empty() ? otherwise : parse_number<size_t>(text);
  }

  // Older files list constants as inputs too.
  Result<void> read_input(pbf_reader from) {
    SK_TRY_ASSIGN(const Value read, read_value(from));
    if (!make(read.name)) {
      if (ids_.contains(read.name) && value(add(read.name)).is_constant) return {};
      return error(ErrorCode::malformed, "there are two inputs '{}'", printable(read.name));
    }
    if (!read.dims || read.dtype == ir::DType::variant)
      return error(ErrorCode::unsupported, "its input '{}' is not a tensor of known rank", printable(read.name));
    const int id = add(read.name);
    value(id) = read;
    out_.inputs.push_back(id);
    return {};
  }

  // A value without a name counts as left out.
  static Result<Value> read_value(pbf_reader from) {
    Value out{.name = {}, .dims = {}, .data = {}};
    while (from.next()) {
      if (from.tag() == field::kValueName) {
        out.name = text(from);
      } else if (from.tag() == field::kValueType) {
        SK_TRY(read_type(message(from), out));
      } else {
        from.skip();
      }
    }
    return out;
  }

  static Result<void> read_type(pbf_reader type, Value& to) {
    while (type.next(field::kTensorType)) {
      pbf_reader tensor = message(type);
      while (tensor.next()) {
        if (tensor.tag() == field::kElemType) {
          to.dtype = dtype_of(integer(tensor)).value_or(ir::DType::variant);
        } else if (tensor.tag() == field::kShape) {
          SK_TRY_ASSIGN(to.dims, read_shape(message(tensor), to.name));
        } else {
          tensor.skip();
        }
      }
    }
    return {};
  }

  // -1: dynamic.
  static Result<std::vector<int64_t>> read_shape(pbf_reader shape, const std::string& name) {
    std::vector<int64_t> dims;
    while (shape.next(field::kDim)) {
      pbf_reader dim = message(shape);
      int64_t size = -1;
      while (dim.next(field::kDimValue)) size = integer(dim);
      if (size > std::numeric_limits<int32_t>::max())
        return error(ErrorCode::malformed, "'{}' has a dimension of {}", printable(name), size);
      dims.push_back(size < 0 ? -1 : size);
    }
    if (dims.size() > kMostDims)
      return error(ErrorCode::malformed, "'{}' has {} dimensions", printable(name), dims.size());
    return dims;
  }

  Result<void> declare(pbf_reader from) {
    SK_TRY_ASSIGN(const Value read, read_value(from));
    const auto known = ids_.find(read.name);
    if (known == ids_.end()) return {};
    Value& one = value(known->second);
    if (one.is_constant || std::ranges::count(out_.inputs, known->second) != 0) return {};
    one.dtype = read.dtype;
    one.dims = read.dims;
    return {};
  }

  Result<void> read_output(pbf_reader from) {
    SK_TRY_ASSIGN(const Value read, read_value(from));
    const auto known = ids_.find(read.name);
    if (known == ids_.end() || !made_.contains(read.name))
      return error(ErrorCode::malformed, "no node computes its output '{}'", printable(read.name));
    Value& one = value(known->second);
    one.is_output = true;
    if (one.dtype == ir::DType::variant) one.dtype = read.dtype;
    if (!one.dims) one.dims = read.dims;
    out_.outputs.push_back({read.name, known->second});
    return {};
  }

  Result<void> read_node(pbf_reader from) {
    Node node;
    std::vector<std::string> inputs, outputs;
    std::vector<pbf_reader> attributes;
    while (from.next()) {
      switch (from.tag()) {
        case field::kNodeInput: inputs.push_back(text(from)); break;
        case field::kNodeOutput: outputs.push_back(text(from)); break;
        case field::kNodeName: node.name = text(from); break;
        case field::kOp: node.op = text(from); break;
        case field::kNodeDomain: node.domain = text(from); break;
        case field::kAttribute: attributes.push_back(message(from)); break;
        default: from.skip();
      }
    }
    if (node.domain == "ai.onnx") node.domain.clear();
    if (node.name.empty() && !outputs.empty()) node.name = outputs[0];
    const auto version = opsets_.find(node.domain);
    node.since = version == opsets_.end() ? 1 : version->second;
    const auto context = [&] { return fmt::format("node '{}' {}", printable(node.name), printable(node.op)); };
    for (const std::string& name : inputs) {
      if (!name.empty() && !made_.contains(name))
        return error(ErrorCode::malformed, "{}: it reads '{}', which no earlier node computes", context(),
                     printable(name));
      node.inputs.push_back(name.empty() ? kNone : add(name));
    }
    // Before the outputs: graphs inside do not see these, and may use their names.
    for (const pbf_reader& one : attributes) {
      auto read = read_attribute(one, node);
      if (!read.ok()) return std::move(read).error().with_context(context());
    }
    for (const std::string& name : outputs) {
      if (!name.empty() && !make(name))
        return error(ErrorCode::malformed, "{}: it computes '{}', which exists already", context(), printable(name));
      node.outputs.push_back(name.empty() ? kNone : add(name));
    }
    nodes_->push_back(std::move(node));
    return {};
  }

  // A branch of an If. Its values have their names only there. Returns nothing if it has a form that cannot be read:
  // the If is not claimed then.
  std::optional<Branch> read_branch(pbf_reader graph) {
    if (depth_ == kMostDepth) return std::nullopt;
    std::vector<pbf_reader> nodes, outputs;
    Branch out;
    std::vector<Node>* const outer = std::exchange(nodes_, &out.nodes);
    const size_t ids = new_ids_.size(), made = new_made_.size();
    ++depth_;
    const auto read = [&]() -> Result<void> {
      while (graph.next()) {
        switch (graph.tag()) {
          case field::kNode: nodes.push_back(message(graph)); break;
          case field::kOutput: outputs.push_back(message(graph)); break;
          case field::kInitializer: SK_TRY(read_initializer(message(graph))); break;
          case field::kInput:
          case field::kSparse: return error(ErrorCode::unsupported, "it has inputs or sparse constants");
          default: graph.skip();
        }
      }
      for (const pbf_reader& one : nodes) SK_TRY(read_node(one));
      for (const pbf_reader& one : outputs) {
        SK_TRY_ASSIGN(const Value made_here, read_value(one));
        if (!made_.contains(made_here.name)) return error(ErrorCode::malformed, "no node computes its output");
        out.outputs.push_back(add(made_here.name));
      }
      return {};
    };
    const bool done = read().ok();
    --depth_;
    nodes_ = outer;
    for (; new_made_.size() > made; new_made_.pop_back()) made_.erase(new_made_.back());
    for (; new_ids_.size() > ids; new_ids_.pop_back()) ids_.erase(new_ids_.back());
    return done ? std::optional(std::move(out)) : std::nullopt;
  }

  // Other graphs inside nodes are not read: such nodes are not claimed. Only the values of this graph that they read
  // are recorded.
  void read_inner(const pbf_reader& graph, Node& node) {
    std::vector<pbf_reader> graphs = {graph}, nodes;
    const auto note = [&](const std::string& name) {
      if (made_.contains(name) && std::ranges::count(node.inner_inputs, add(name)) == 0)
        node.inner_inputs.push_back(add(name));
    };
    while (!graphs.empty()) {
      pbf_reader at = graphs.back();
      graphs.pop_back();
      while (at.next()) {
        if (at.tag() == field::kOutput)
          for (pbf_reader out = message(at); out.next(field::kValueName);) note(text(out));
        else if (at.tag() == field::kNode)
          nodes.push_back(message(at));
        else
          at.skip();
      }
      for (; !nodes.empty(); nodes.pop_back()) {
        for (pbf_reader& one = nodes.back(); one.next();) {
          if (one.tag() == field::kNodeInput)
            note(text(one));
          else if (one.tag() == field::kAttribute)
            for (pbf_reader attribute = message(one); attribute.next(field::kBody);)
              graphs.push_back(message(attribute));
          else
            one.skip();
        }
      }
    }
  }

  Result<void> read_attribute(pbf_reader from, Node& node) {
    std::string name;
    Attribute to;
    std::vector<pbf_reader> bodies;
    while (from.next()) {
      switch (from.tag()) {
        case field::kName: name = text(from); break;
        case field::kFloat: to.floats = {number(from)}; break;
        case field::kInt: to.ints = {integer(from)}; break;
        case field::kText: to.text = text(from); break;
        case field::kTexts: to.text += (to.text.empty() ? "" : " ") + text(from); break;
        case field::kFloats: append(from, to.floats); break;
        case field::kInts: append(from, to.ints); break;
        case field::kBody: bodies.push_back(message(from)); break;
        case field::kTensor: {
          SK_TRY_ASSIGN(Value read, read_tensor(message(from)));
          to.tensor = std::make_shared<const Value>(std::move(read));
          break;
        }
        default: from.skip();
      }
    }
    for (const pbf_reader& body : bodies) {
      read_inner(body, node);
      if (node.op == "If" && node.domain.empty())
        if (auto branch = read_branch(body)) node.branches.insert_or_assign(name, std::move(*branch));
    }
    node.attributes[name] = std::move(to);
    return {};
  }

  const std::string folder_;
  ModelFile out_;
  std::map<std::string, int> opsets_, ids_;
  std::set<std::string> made_;                    // names that a node may read
  std::vector<Node>* nodes_ = &out_.model.nodes;  // of the graph that is read
  int depth_ = 0;                                 // of graphs inside nodes
  std::vector<std::string> new_ids_, new_made_;   // names of the graphs inside nodes
  std::vector<pbf_reader> declared_;
};

}  // namespace

std::span<const uint8_t> ModelFile::keep(Bytes bytes) {
  contents->made.push_back(std::move(bytes));
  return contents->made.back();
}

Result<ModelFile> read_model(Bytes file, const std::string& folder) {
  try {
    return Reader(std::move(file), folder).run();
  } catch (const protozero::exception& caught) {
    return error(ErrorCode::malformed, "it is not an ONNX model, or is damaged: {}", caught.what());
  }
}

std::optional<ir::DType> dtype_of(int64_t onnx_type) {
  using enum ir::DType;
  constexpr ir::DType kTypes[] = {variant, float32, uint8,   int8,   uint16, int16,     int32,      int64,   string,
                                  boolean, float16, float64, uint32, uint64, complex64, complex128, bfloat16};
  if (onnx_type < 1 || onnx_type >= std::ssize(kTypes)) return std::nullopt;
  return kTypes[onnx_type];
}

}  // namespace skillet::onnx
