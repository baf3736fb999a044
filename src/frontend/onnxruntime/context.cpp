#include "frontend/onnxruntime/context.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "frontend/host/choice.h"
#include "runtime/content_hash.h"
#include "runtime/program_cache.h"
#include "runtime/verify.h"

namespace skillet::onnxruntime {
namespace {

constexpr const char* kBytes = "ep_cache_context";
constexpr const char* kEmbedMode = "embed_mode";
constexpr const char* kHash = "notes";  // hash of the bytes and the part's name: bytes of another node are refused
constexpr const char* kName = "partition_name";

// Names ports by the model's values. The host allocates memory by the model's types and shapes.
Result<void> name_ports(std::vector<Port>& ports, const Model& model, const std::vector<int>& values) {
  if (ports.size() != values.size())
    return error(ErrorCode::malformed, "it has {} inputs or outputs, its node {}", ports.size(), values.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    if (values[i] == kNone) return error(ErrorCode::malformed, "its node omits one");
    const Value& value = model.value(values[i]);
    if (ports[i].is_float ? value.dtype != ir::DType::float32 : !value.is_8bit())
      return error(ErrorCode::malformed, "'{}' has another type", value.name);
    const std::vector<int64_t>& dims = ports[i].dims;
    const auto is_same = [](int64_t mine, int64_t theirs) { return theirs < 0 || mine == theirs; };
    if (value.dims && !std::ranges::equal(dims, *value.dims, is_same))
      return error(ErrorCode::malformed, "'{}' has shape {}, but {} in the part", value.name,
                   fmt::join(*value.dims, "x"), fmt::join(dims, "x"));
    ports[i].name = value.name;
  }
  return {};
}

// Bytes in the node, or in the file that it names. The file must be in the model's folder.
Result<Bytes> bytes_of(const Node& node, const std::string& path) {
  const std::string text = string_of(node, kBytes, "");
  const int64_t mode = int_of(node, kEmbedMode, 1);
  if (mode == 1) return Bytes(text.begin(), text.end());
  if (mode != 0) return error(ErrorCode::malformed, "its embed_mode is {}, neither 0 nor 1", mode);
  const std::string_view name(text);
  constexpr size_t kLongest = 255;
  if (name.empty() || name.size() > kLongest || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\\\0", 3)) != std::string_view::npos)
    return error(ErrorCode::malformed,
                 "its bytes are expected in '{}', which is not the name of a file beside the model",
                 printable(text.substr(0, kLongest)));
  if (path.empty())
    return error(ErrorCode::unsupported,
                 "its bytes are in the file '{}' beside the model, which was not found: load the model by its path",
                 printable(text));
  return read_file(std::filesystem::path(path).replace_filename(text));
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

Result<void> check_fits_model(uint64_t bytes) {
  constexpr uint64_t kMost = INT32_MAX;  // limit of Protocol Buffers
  if (bytes <= kMost) return {};
  return error(ErrorCode::unsupported,
               "compiled parts of {} bytes do not fit one ONNX file of at most {}: ep.context_embed_mode 0 puts them "
               "into files beside it",
               bytes, kMost);
}

Result<OrtNode*> context_node(const Ort& ort, const std::string& name, const Part& part, const std::string& chip,
                              const std::string& file) {
  const std::string_view bytes(reinterpret_cast<const char*>(part.saved.data()), part.saved.size());
  Attributes attributes(ort);
  SK_TRY(attributes.add("main_context", int64_t{1}));
  const std::string beside = std::filesystem::path(file).filename();
  if (!file.empty()) SK_TRY(write_file(file, part.saved));
  SK_TRY(attributes.add(kEmbedMode, int64_t{file.empty()}));
  SK_TRY(attributes.add(kBytes, file.empty() ? bytes : beside));
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

Result<StoredPart> part_from(const Model& model, int node, const std::string& path, const runtime::Target& target,
                             const host::Options& options, bool is_first) {
  SK_TRY_ASSIGN(Bytes given, bytes_of(model.node(node), path));
  const SharedBytes bytes(std::move(given));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SK_TRY_ASSIGN(runtime::CompiledModel saved, runtime::read_compiled(bytes));
  const std::string name = string_of(model.node(node), kName, "");
  if (string_of(model.node(node), kHash, "") != hash_of(text, name))
    return error(ErrorCode::malformed, "its bytes differ from those its node was written with: write the model again");
  SK_TRY_ASSIGN(Ports ports, ports_of(saved.note, saved.graph));
  SK_TRY(name_ports(ports.inputs, model, model.node(node).inputs));
  SK_TRY(name_ports(ports.outputs, model, model.node(node).outputs));
  if (is_first) runtime::say_what_differs(saved, target);  // the others were written with the same options
  runtime::SessionOptions session = host::session_options(options);
  session.programs = std::make_shared<runtime::ProgramStore>(std::move(saved.programs));
  SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(target, std::move(saved.graph), session));
  runtime::log_compared(target, compiled.verified);
  SK_TRY_ASSIGN(auto made, runtime::Session::create(std::move(compiled), target, session));
  log::info("{} programs as stored", session.programs->taken());
  StoredPart out{.unused = runtime::what_is_unused(saved, *session.programs, target, session)};
  out.part = Part::of({node}, std::move(ports.inputs), std::move(ports.outputs), std::move(made));
  out.part->saved.assign(bytes.begin(), bytes.end());  // kept in case the host writes the model again
  return out;
}

}  // namespace skillet::onnxruntime
