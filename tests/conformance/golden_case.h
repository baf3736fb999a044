// Golden cases: a model, its inputs, and the outputs that TensorFlow Lite's reference kernels computed.
// Called by the conformance test and by every test that compares a device or a simulator with them.
// Must not know: how the model is run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::golden {

struct CaseInput {
  std::string name;
  std::vector<int64_t> dims;
  std::string type;  // "UINT8", "INT8", "FLOAT32", ...
  Bytes bytes;
};

struct CaseOutput {
  std::string name;
  std::vector<int64_t> dims;
  std::string type;
  size_t bytes = 0;
  std::string sha256_128;         // first 128 bits of the hash, hex
  std::optional<Bytes> expected;  // if the case contains them
};

struct GoldenCase {
  std::string set, name;
  std::string model_path;
  std::vector<std::string> ops;   // "CONV_2D", ... in order
  std::vector<CaseInput> inputs;  // in the order of the graph's inputs
  std::vector<CaseOutput> outputs;
};

struct CaseId {
  std::string set, name;
};

// Folder with cases/ and models/: $SKILLET_GOLDEN, else ../shared/golden beside the source tree; nothing if neither
// exists.
std::optional<std::string> find_golden_dir();

// Lists every cases/SET/NAME that has a case.json, sorted.
Result<std::vector<CaseId>> list_cases(const std::string& golden_dir);

// Reads case.json and makes the inputs: from input_N.bin, or by the generator that the case names. Checks the inputs'
// hashes. Error code `unsupported`: an input was neither kept nor has a generator.
Result<GoldenCase> load_case(const std::string& golden_dir, const std::string& set, const std::string& name);

// Error unless `actual` has the size and hash of `output`; names the first differing byte if the expected bytes are
// known.
Result<void> compare_output(const CaseOutput& output, std::span<const uint8_t> actual);

}  // namespace skillet::golden
