#include "conformance.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/import/import.h"
#include "graph/ref/ref.h"

namespace skillet::golden {
namespace {

Result<void> check(const GoldenCase& golden) {
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(golden.model_path));
  SK_TRY_ASSIGN(ref::Interpreter interpreter, ref::Interpreter::create(graph));
  if (graph.inputs.size() != golden.inputs.size() || graph.outputs.size() != golden.outputs.size()) {
    return error(ErrorCode::malformed, "{} inputs and {} outputs, expected {} and {}", graph.inputs.size(),
                 graph.outputs.size(), golden.inputs.size(), golden.outputs.size());
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto to = interpreter.tensor(graph.inputs[i]);
    const Bytes& from = golden.inputs[i].bytes;
    if (to.size() != from.size()) return error(ErrorCode::malformed, "input {} has {} bytes", i, to.size());
    std::copy(from.begin(), from.end(), to.begin());
  }
  SK_TRY(interpreter.run());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    SK_TRY(compare_output(golden.outputs[i], interpreter.tensor(graph.outputs[i])));
  }
  return {};
}

}  // namespace

Result<void> run_case(const std::string& golden_dir, const CaseId& id) {
  SK_TRY_ASSIGN(const GoldenCase golden, load_case(golden_dir, id.set, id.name));
  return check(golden);
}

Result<Tally> run_all(const std::string& golden_dir) {
  SK_TRY_ASSIGN(const auto ids, list_cases(golden_dir));
  Tally tally;
  for (const CaseId& id : ids) {
    const Result<void> result = run_case(golden_dir, id);
    if (result.ok()) {
      ++tally.passed;
    } else if (result.error().code == ErrorCode::unsupported) {
      // Counts by the reason alone: the path or op before it differs between cases.
      const std::string& message = result.error().message;
      const size_t at = message.rfind(": ");
      ++tally.not_covered[at == std::string::npos ? message : message.substr(at + 2)];
    } else {
      tally.failed.push_back(fmt::format("{}/{}: {}", id.set, id.name, result.error().message));
    }
  }
  return tally;
}

void print(const Tally& tally) {
  int not_covered = 0;
  for (const auto& [reason, count] : tally.not_covered) {
    fmt::print("not covered: {} ({} cases)\n", reason, count);
    not_covered += count;
  }
  for (const std::string& line : tally.failed) fmt::print("failed: {}\n", line);
  fmt::print("{} passed, {} failed, {} not covered\n", tally.passed, tally.failed.size(), not_covered);
}

}  // namespace skillet::golden
