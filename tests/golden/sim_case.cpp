#include "sim_case.h"

#include <algorithm>
#include <cctype>

#include "base/testing/noise.h"
#include "graph/import/import.h"

namespace skillet::golden {
namespace {

std::string type_name(ir::DType dtype) {
  std::string name(ir::dtype_name(dtype));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// Builds the contents of a case.json from the model itself.
Result<ReplayCase> case_from_model(const std::string& dir, const std::string& set, const std::string& name) {
  ReplayCase c{.inputs_recorded = false};
  c.golden.set = set;
  c.golden.name = name;
  c.golden.model_path = dir + "/models/" + set + "/" + name + ".tflite";
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(c.golden.model_path));
  for (const ir::Op& op : graph.ops) c.golden.ops.emplace_back(ir::op_name(op));
  for (const ir::TensorId id : graph.inputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    c.golden.inputs.push_back({.name = tensor.name,
                               .type = type_name(tensor.dtype),
                               .bytes = testing::noise(static_cast<size_t>(tensor.bytes()))});
  }
  for (const ir::TensorId id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    c.golden.outputs.push_back(
        {.name = tensor.name, .type = type_name(tensor.dtype), .bytes = static_cast<size_t>(tensor.bytes())});
  }
  return c;
}

}  // namespace

bool ReplayCase::has_op(std::string_view op) const {
  return std::find(golden.ops.begin(), golden.ops.end(), op) != golden.ops.end();
}

Result<ReplayCase> read_replay_case(const std::string& dir, const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return error(ErrorCode::invalid_argument, "'{}' is not SET/CASE", name);
  const std::string set = name.substr(0, slash), base = name.substr(slash + 1);
  auto golden = load_case(dir, set, base);
  if (!golden.ok() && golden.error().code == ErrorCode::unsupported) return case_from_model(dir, set, base);
  if (!golden.ok()) return std::move(golden).error();
  return ReplayCase{.golden = std::move(golden).value()};
}

}  // namespace skillet::golden
