#include "frontend/onnxruntime/context.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <sstream>

#include "base/log.h"
#include "base/text.h"
#include "frontend/host/choice.h"
#include "runtime/content_hash.h"
#include "runtime/verify.h"

namespace skillet::onnxruntime {
namespace {

constexpr const char* kBytes = "ep_cache_context";
constexpr const char* kHash = "notes";  // of the bytes and the part's name: those of another node are refused
constexpr const char* kName = "partition_name";
constexpr int64_t kMostElems = int64_t{1} << 31;
constexpr int kMostZeroPoint = 1024;
constexpr size_t kMostRank = 64;

std::optional<int64_t> product(std::span<const int64_t> sizes) {
  int64_t out = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMostElems / out) return std::nullopt;
    out *= size;
  }
  return out;
}

// "in 1 3 64 0 0 3c23d70a 5 0 1 3 8 8"
std::string line_of(const char* side, const Port& port) {
  return fmt::format("{} {} {} {} {} {} {:x} {} {} {}\n", side, port.n, port.c, port.hw, int{port.is_float},
                     int{port.flips}, std::bit_cast<uint32_t>(port.scale), port.zero_point, port.session_port,
                     fmt::join(port.dims, " "));
}

Result<Port> port_of(std::istringstream& line, const ir::Graph& graph, const std::vector<ir::TensorId>& ids) {
  const Error wrong = error(ErrorCode::malformed, "its inputs and outputs are not as its graph has them");
  Port port;
  uint32_t scale = 0;
  line >> port.n >> port.c >> port.hw >> port.is_float >> port.flips >> std::hex >> scale >> std::dec >>
      port.zero_point >> port.session_port;
  if (!line || port.session_port >= ids.size()) return wrong;
  for (int64_t size = 0; port.dims.size() < kMostRank && line >> size;) port.dims.push_back(size);
  const ir::Tensor& tensor = graph.tensor(ids[port.session_port]);
  const auto elems = product(std::array{port.n, port.c, port.hw});
  port.scale = std::bit_cast<float>(scale);
  port.is_signed = tensor.dtype == ir::DType::int8;
  const bool fits = elems && elems == product(port.dims) && *elems == tensor.shape.elems() &&
                    ir::is_8bit(tensor.dtype) && std::isfinite(port.scale) && port.scale > 0 &&
                    std::abs(int64_t{port.zero_point}) < kMostZeroPoint;
  return fits ? Result<Port>(std::move(port)) : wrong;
}

// The host gives memory by what the model says of a value.
Result<void> name_ports(std::vector<Port>& ports, const Model& model, const std::vector<int>& values) {
  if (ports.size() != values.size())
    return error(ErrorCode::malformed, "it has {} inputs or outputs, its node {}", ports.size(), values.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    if (values[i] == kNone) return error(ErrorCode::malformed, "its node leaves one out");
    const Value& value = model.value(values[i]);
    if (ports[i].is_float ? value.dtype != ir::DType::float32 : !value.is_8bit())
      return error(ErrorCode::malformed, "'{}' has another type", value.name);
    const std::vector<int64_t>& dims = ports[i].dims;
    const auto is_same = [](int64_t mine, int64_t theirs) { return theirs < 0 || mine == theirs; };
    if (value.dims && !std::ranges::equal(dims, *value.dims, is_same))
      return error(ErrorCode::malformed, "'{}' has shape {}, in the part {}", value.name, fmt::join(*value.dims, "x"),
                   fmt::join(dims, "x"));
    ports[i].name = value.name;
  }
  return {};
}

std::string hash_of(std::string_view bytes, std::string_view name) {
  runtime::ContentHash hash;
  for (const std::string_view part : {name, bytes}) hash.add(part.data(), part.size());
  return hash.text();
}

class Attributes {
 public:
  explicit Attributes(const Ort& ort) : ort_(ort) {}
  ~Attributes() {
    for (OrtOpAttr* one : held_) ort_.call(kReleaseAttribute, one);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  Result<void> add(const char* name, int64_t value) { return add(name, &value, 1, kAttributeInt); }
  Result<void> add(const char* name, std::string_view text) {
    return add(name, text.data(), static_cast<int>(text.size()), kAttributeString);
  }
  OrtOpAttr** data() { return held_.data(); }
  size_t size() const { return held_.size(); }

 private:
  Result<void> add(const char* name, const void* data, int count, int type) {
    return ort_.attempt(kCreateAttribute, name, data, count, type, &held_.emplace_back(nullptr));
  }
  const Ort& ort_;
  std::vector<OrtOpAttr*> held_;
};

std::vector<const char*> names_of(std::span<const Port> ports) {
  std::vector<const char*> out;
  for (const Port& port : ports) out.push_back(port.name.c_str());
  return out;
}

}  // namespace

std::string note_of(std::span<const Port> inputs, std::span<const Port> outputs) {
  std::string out;
  for (const Port& port : inputs) out += line_of("in", port);
  for (const Port& port : outputs) out += line_of("out", port);
  return out;
}

Result<Ports> ports_of(const std::string& note, const ir::Graph& graph) {
  Ports out;
  std::set<size_t> given, read;
  std::istringstream lines(note);
  for (std::string text; std::getline(lines, text);) {
    std::istringstream line(text);
    std::string side;
    line >> side;
    const bool is_input = side == "in";
    SK_TRY_ASSIGN(Port port, port_of(line, graph, is_input ? graph.inputs : graph.outputs));
    (is_input ? given : read).insert(port.session_port);
    (is_input ? out.inputs : out.outputs).push_back(std::move(port));
  }
  if (out.inputs.size() != graph.inputs.size() || given.size() != graph.inputs.size() ||
      read.size() != graph.outputs.size())
    return error(ErrorCode::malformed, "not all inputs and outputs of its graph are there");
  return out;
}

Result<OrtNode*> context_node(const Ort& ort, const std::string& name, const Part& part, const std::string& chip) {
  const std::string_view bytes(reinterpret_cast<const char*>(part.saved.data()), part.saved.size());
  if (bytes.size() > INT32_MAX) return error(ErrorCode::unsupported, "a part of {} bytes", bytes.size());
  Attributes attributes(ort);
  SK_TRY(attributes.add("main_context", int64_t{1}));
  SK_TRY(attributes.add("embed_mode", int64_t{1}));
  SK_TRY(attributes.add(kBytes, bytes));
  SK_TRY(attributes.add("source", std::string_view(kProviderName)));
  SK_TRY(attributes.add("ep_sdk_version", std::string_view(SKILLET_VERSION)));
  SK_TRY(attributes.add("hardware_architecture", std::string_view(chip)));
  SK_TRY(attributes.add(kName, std::string_view(name)));
  SK_TRY(attributes.add(kHash, hash_of(bytes, name)));
  const auto inputs = names_of(part.inputs()), outputs = names_of(part.outputs());
  OrtNode* node = nullptr;
  SK_TRY(ort.attempt_editor(kCreateNode, "EPContext", "com.microsoft", name.c_str(), inputs.data(), inputs.size(),
                            outputs.data(), outputs.size(), attributes.data(), attributes.size(), &node));
  return node;
}

bool is_context(const Node& node) {
  return node.op == "EPContext" && node.domain == "com.microsoft" && string_of(node, "source", "") == kProviderName;
}

Result<std::unique_ptr<Part>> part_from(const Model& model, int node, const runtime::Target& target,
                                        const host::Options& options, bool is_first) {
  const std::string text = string_of(model.node(node), kBytes, "");
  if (int_of(model.node(node), "embed_mode", 1) != 1)
    return error(ErrorCode::unsupported,
                 "its bytes are to be in the file '{}'; this provider reads and writes them in the model only "
                 "(ep.context_embed_mode 1)",
                 printable(text));
  SK_TRY_ASSIGN(runtime::CompiledModel saved, runtime::read_compiled(Bytes(text.begin(), text.end())));
  const std::string name = string_of(model.node(node), kName, "");
  if (string_of(model.node(node), kHash, "") != hash_of(text, name))
    return error(ErrorCode::malformed, "its bytes are not those that its node was written with: write the model again");
  SK_TRY_ASSIGN(Ports ports, ports_of(saved.note, saved.graph));
  SK_TRY(name_ports(ports.inputs, model, model.node(node).inputs));
  SK_TRY(name_ports(ports.outputs, model, model.node(node).outputs));
  if (is_first) runtime::say_what_differs(saved, target);  // the others were written with it
  runtime::SessionOptions session = host::session_options(options);
  session.programs = std::make_shared<runtime::ProgramStore>(std::move(saved.programs));
  SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(target, std::move(saved.graph), session));
  SK_TRY_ASSIGN(auto made, runtime::Session::create(std::move(compiled), target, session));
  log::info("{} programs as stored", session.programs->taken());
  return Part::of({node}, std::move(ports.inputs), std::move(ports.outputs), std::move(made));
}

}  // namespace skillet::onnxruntime
