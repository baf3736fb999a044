#include "tools/time/layer_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "base/parse_number.h"

namespace skillet::tools {
namespace {

constexpr int64_t kSizeMax = 65536;                 // limit of one dimension
constexpr int64_t kElementsMax = int64_t{1} << 32;  // limit of a tensor, or of all weights of a layer
constexpr double kProductsMax = 1e16;               // limit of a layer; cycles are counted in 64 bits
constexpr size_t kFileMax = size_t{16} << 20, kIdMax = 1'000'000;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

class Parser {
 public:
  Result<std::vector<sim::Layer>> parse(std::string_view text, sim::Fusion& fusion) {
    std::vector<sim::Layer> layers;
    for (std::string_view line : split(text, '\n')) {
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      if (columns_.empty()) {
        SK_TRY(read_header(line));
        continue;
      }
      fields_ = split(line, ',');
      if (fields_.size() != columns_.size())
        return wrong("{} fields, but the header has {}", fields_.size(), columns_.size());
      SK_TRY_INTO(layers.emplace_back(), read_layer());
    }
    if (columns_.empty()) return wrong("no header line");
    if (layers.empty()) return wrong("no layers");
    fusion = is_table_ ? sim::Fusion::alone : sim::Fusion::network;
    return layers;
  }

 private:
  template <typename... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return error(ErrorCode::malformed, "line {}: {}", line_, fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> read_header(std::string_view line) {
    columns_ = split(line, ',');
    is_table_ = has("dtype");
    const std::string_view common[] = {"id",    "op",    "in_h", "in_w", "in_c", "out_h",
                                       "out_w", "out_c", "kh",   "kw",   "act"};
    const std::string_view network[] = {"inputs", "sh", "dh", "weight_elems"}, table[] = {"stride", "fused_add"};
    for (const std::string_view name : common) SK_TRY(need(name));
    for (const std::string_view name : is_table_ ? std::span<const std::string_view>(table) : network)
      SK_TRY(need(name));
    return {};
  }
  bool has(std::string_view name) const { return std::ranges::find(columns_, name) != columns_.end(); }
  Result<void> need(std::string_view name) const {
    if (std::ranges::count(columns_, name) == 1) return {};
    return wrong("column {} {}", name, has(name) ? "occurs twice" : "is missing");
  }

  std::string_view field(std::string_view name) const {
    return fields_[static_cast<size_t>(std::ranges::find(columns_, name) - columns_.begin())];
  }
  Result<int64_t> number(std::string_view name, std::string_view text, int64_t most) const {
    const auto value = parse_number<int64_t>(text);
    if (!value || *value < 0 || *value > most)
      return wrong("column {}: '{}' is not a whole number from 0 to {}", name, text, most);
    return *value;
  }
  // An empty field is 0.
  Result<void> read(std::string_view name, int64_t& value, int64_t most = kSizeMax) const {
    if (field(name).empty()) return {};
    SK_TRY_ASSIGN(value, number(name, field(name), most));
    return {};
  }

  Result<sim::Layer> read_layer() {
    sim::Layer layer{.op = std::string(field("op")), .act = std::string(field("act"))};
    int64_t id = 0;
    if (field("id").empty()) return wrong("column id is empty");
    SK_TRY(read("id", id, kIdMax));
    layer.id = static_cast<int>(id);
    if (!ids_.insert(layer.id).second) return wrong("column id: {} occurs twice", id);
    const std::pair<std::string_view, int64_t*> sizes[] = {
        {"in_h", &layer.in_h},   {"in_w", &layer.in_w},   {"in_c", &layer.in_c}, {"out_h", &layer.out_h},
        {"out_w", &layer.out_w}, {"out_c", &layer.out_c}, {"kh", &layer.kh},     {"kw", &layer.kw}};
    for (const auto& [name, value] : sizes) SK_TRY(read(name, *value));
    if (layer.op.empty()) return wrong("column op is empty");
    SK_TRY(is_table_ ? read_table(layer) : read_network(layer));
    SK_TRY(check(layer));
    return layer;
  }

  Result<void> read_network(sim::Layer& layer) {
    SK_TRY(read("sh", layer.stride));
    SK_TRY(read("dh", layer.dilation));
    SK_TRY(read("weight_elems", layer.weights, kElementsMax));
    for (const std::string_view text : split(field("inputs"), ' ')) {
      if (text.empty()) continue;
      SK_TRY_ASSIGN(const int64_t from, number("inputs", text, kIdMax));
      if (from == layer.id || !ids_.contains(static_cast<int>(from)))
        return wrong("column inputs: no layer before this one has id {}", from);
      layer.inputs.push_back(static_cast<int>(from));
    }
    return {};
  }

  Result<void> read_table(sim::Layer& layer) {
    int64_t fused = 0;
    SK_TRY(read("stride", layer.stride));
    SK_TRY(read("fused_add", fused, 1));
    layer.fused_add = fused != 0;
    const std::string_view dtype = field("dtype");
    if (dtype != "i8" && dtype != "u8" && dtype != "fp16")
      return wrong("column dtype: '{}' is not i8, u8 or fp16", dtype);
    layer.fp16 = dtype == "fp16";
    if (has("ddr_cycles")) SK_TRY(read("ddr_cycles", layer.memory_cycles, kElementsMax));
    layer.weights =
        layer.op == "dwconv" ? layer.kh * layer.kw * layer.out_c : layer.kh * layer.kw * layer.in_c * layer.out_c;
    return {};
  }

  Result<void> check(const sim::Layer& layer) const {
    if (layer.in_elements() > kElementsMax || layer.out_elements() > kElementsMax || layer.weights > kElementsMax)
      return wrong("layer {} has more than {} elements or weights", layer.id, kElementsMax);
    const double products = static_cast<double>(layer.out_h * layer.out_w) * static_cast<double>(layer.kh * layer.kw) *
                            static_cast<double>(layer.in_c) * static_cast<double>(layer.out_c);
    if (products > kProductsMax) return wrong("layer {} has more than {:g} products", layer.id, kProductsMax);
    const bool convolves =
        layer.op == "conv" || layer.op == "dwconv" || layer.op == "convtranspose" || layer.op == "fc";
    const bool empty = layer.in_elements() == 0 || layer.out_elements() == 0;
    if (convolves && (layer.stride == 0 || layer.dilation == 0))
      return wrong("layer {} ({}) has a stride or dilation of 0", layer.id, layer.op);
    if (convolves && (empty || (layer.op != "fc" && layer.kh * layer.kw == 0)))
      return wrong("layer {} ({}) has a size of 0", layer.id, layer.op);
    return {};
  }

  size_t line_ = 0;
  bool is_table_ = false;
  std::vector<std::string_view> columns_, fields_;
  std::set<int> ids_;
};

// Kinds in the networks and tables that the timing model was fitted to; for most of them only the bytes count.
constexpr std::string_view kKinds =
    "input output conv dwconv convtranspose fc maxpool avgpool add sub mul div floor_div sqrt scale "
    "concat split slice pad pack unpack reshape transpose resize_nearest resize_bilinear resize_cpu "
    "softmax sigmoid quantize dequantize cast argmax gather_nd instancenorm space_to_depth";

std::vector<std::string> unknown_kinds(std::span<const sim::Layer> layers) {
  const std::vector<std::string_view> kinds = split(kKinds, ' ');
  std::set<std::string> names;
  for (const sim::Layer& layer : layers) {
    if (std::ranges::find(kinds, layer.op) == kinds.end()) names.insert(layer.op);
  }
  return {names.begin(), names.end()};
}

}  // namespace

Result<LayerFile> parse_layers(std::string_view text, std::string name) {
  LayerFile file{.name = std::move(name)};
  SK_TRY_ASSIGN(file.layers, Parser().parse(text, file.fusion));
  file.unknown = unknown_kinds(file.layers);
  return file;
}

Result<LayerFile> read_layers(const std::string& path) {
  SK_TRY_ASSIGN(const Bytes bytes, read_file(path));
  if (bytes.size() > kFileMax)
    return error(ErrorCode::malformed, "{}: {} bytes; a list of layers has at most {}", path, bytes.size(), kFileMax);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_layers(text, std::filesystem::path(path).stem().string()).with_context(path);
}

}  // namespace skillet::tools
