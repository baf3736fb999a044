// RunResult: everything that `skillet run` found out; printed for people or as JSON.
// Called by run.cpp (fills it) and run_print.cpp (prints it).
// Must not know: the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "runtime/session.h"
#include "tools/run/difference.h"
#include "tools/run/found.h"
#include "tools/tensors/picture.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {

struct OutputResult {
  std::string name, type;     // "uint8 1x1001"
  std::vector<TopClass> top;  // of one vector of scores; empty for other outputs
  double low = 0, high = 0;   // smallest and largest real value
  // From the CPU kernels; whether the best class is theirs, of one vector of scores; how far noise moves theirs.
  std::optional<Difference> difference, noise;
  std::optional<SameClass> same_class;
};

inline constexpr int kDrawingColumns = 22;

// One set of inputs.
struct Inference {
  std::string input;                 // "cat.bmp", "random values, seed 1"
  std::vector<std::string> drawing;  // for --show: rows of characters
  std::vector<double> run_ms;        // one per repetition
  std::vector<OutputResult> outputs;
  std::optional<Found> found;
  std::vector<runtime::LayerDiff> layers;  // --compare=layers
  std::optional<std::string> unexpected;   // --expect: what differs; empty: nothing
};

struct RunResult {
  std::string model, device, chip, input_note, advice;    // chip: empty of the CPU
  bool verbose = false;                                   // how many operations the passes made of the model's
  double import_ms = 0, create_ms = 0, reference_ms = 0;  // reference: of one inference
  std::optional<ProgramTiming> simulated;     // what the NPU's part of an inference would take, where that is known
  std::vector<sim::ParameterValue> measured;  // of the device, by which that was predicted
  std::vector<Inference> inferences;
};

std::string print_text(const RunResult& result, const runtime::Session& session);
std::string print_json(const RunResult& result, const runtime::Session& session);
// One of many as a line: for frames, which may have no end.
std::string print_frame(const Inference& inference);
std::string print_frame_json(const Inference& inference);

}  // namespace skillet::tools
