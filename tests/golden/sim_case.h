// A golden case: its model, inputs and recorded TensorFlow Lite outputs.
// Called by sim_replay.cpp.
// Must not know: captures, simulators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::golden {

struct CaseTensor {
  std::string type;  // "UINT8", "INT8", ...
  uint64_t size_bytes = 0;
  std::optional<Bytes> bytes;  // where a file was kept, or the generator is known

  bool is_signed() const { return type == "INT8"; }
};

struct Case {
  std::string name;  // "set/case"
  std::string model_path;
  std::vector<std::string> ops;  // TensorFlow Lite names
  std::vector<CaseTensor> inputs, outputs;
  bool inputs_recorded = true;  // false: no file and no generator; the bytes are of our own making

  bool has_op(std::string_view op) const;
};

// DIR/cases/SET/CASE/case.json and the files beside it. Errors name file and field.
Result<Case> read_case(const std::string& dir, const std::string& name);

}  // namespace skillet::golden
