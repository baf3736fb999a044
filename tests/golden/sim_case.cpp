#include "sim_case.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace skillet::golden {
namespace {

using Json = nlohmann::json;

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

Result<CaseTensor> read_tensor(const Json& json, const std::string& folder) {
  if (!json.contains("type") || !json.contains("bytes")) return error(ErrorCode::malformed, "type or bytes missing");
  CaseTensor tensor{.type = json["type"].get<std::string>(), .size_bytes = json["bytes"].get<uint64_t>()};
  if (!json.contains("file")) return tensor;
  SK_TRY_ASSIGN(Bytes bytes, read_file(folder + "/" + json["file"].get<std::string>()));
  if (bytes.size() != tensor.size_bytes)
    return error(ErrorCode::malformed, "{} bytes in the file, {} in case.json", bytes.size(), tensor.size_bytes);
  tensor.bytes = std::move(bytes);
  return tensor;
}

Result<std::vector<CaseTensor>> read_tensors(const Json& json, const char* field, const std::string& folder) {
  std::vector<CaseTensor> tensors;
  for (const Json& one : json.value(field, Json::array())) {
    SK_TRY_ASSIGN(CaseTensor tensor,
                  read_tensor(one, folder).with_context(fmt::format("{}[{}]", field, tensors.size())));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Inputs without a file come from one generator for all inputs in order; where case.json names none, the same
// generator gives bytes that are as good as any.
void generate_inputs(const Json& json, Case& c) {
  SplitMix64 random(1);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Bytes bytes(c.inputs[i].size_bytes);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random.next()); });
    if (c.inputs[i].bytes) continue;
    c.inputs[i].bytes = std::move(bytes);
    c.inputs_recorded = c.inputs_recorded && json["inputs"][i].contains("generator");
  }
}

}  // namespace

bool Case::has_op(std::string_view op) const { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

Result<Case> read_case(const std::string& dir, const std::string& name) {
  const std::string folder = dir + "/cases/" + name;
  SK_TRY_ASSIGN(const Bytes bytes, read_file(folder + "/case.json"));
  const Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!json.is_object() || !json.contains("model"))
    return error(ErrorCode::malformed, "{}/case.json: no model", folder);
  Case c{.name = name, .model_path = dir + "/" + json["model"].get<std::string>()};
  for (const Json& op : json.value("ops", Json::array())) c.ops.push_back(op.get<std::string>());
  SK_TRY_ASSIGN(c.inputs, read_tensors(json, "inputs", folder).with_context(folder));
  SK_TRY_ASSIGN(c.outputs, read_tensors(json, "outputs", folder).with_context(folder));
  generate_inputs(json, c);
  return c;
}

}  // namespace skillet::golden
