// RunResult: all results of `skillet run`, printed for people or as JSON.
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
  std::vector<TopClass> top;  // for one vector of scores; empty for other outputs
  double low = 0, high = 0;   // smallest and largest real value
  // Difference to the CPU kernels; effect of noise on their outputs; for scores, whether the best class is the same.
  std::optional<Difference> difference, noise;
  std::optional<SameClass> same_class;
};

inline constexpr int kDrawingColumns = 22;

// One set of inputs.
struct Inference {
  std::string input;                 // "cat.bmp", "random values, seed 1"
  std::vector<std::string> drawing;  // for --show: rows of characters
  std::vector<double> run_ms;        // one for each repetition
  std::vector<OutputResult> outputs;
  std::optional<Found> found;
  std::vector<runtime::LayerDiff> layers;  // --compare=layers
  std::optional<std::string> unexpected;   // --expect: the differences; empty: none
};

struct RunResult {
  std::string model, device, chip, input_note, advice;    // chip: empty for the CPU
  bool verbose = false;                                   // print how many operations the passes made of the model's
  double import_ms = 0, create_ms = 0, reference_ms = 0;  // reference: time of one inference
  std::optional<ProgramTiming> simulated;     // predicted time of the NPU's part of an inference; none: not known
  std::vector<sim::ParameterValue> measured;  // parameters measured on the device, used for the prediction
  std::vector<Inference> inferences;
};

std::string print_text(const RunResult& result, const runtime::Session& session);
std::string print_json(const RunResult& result, const runtime::Session& session);
// Prints one inference as a line: for frames, which may be endless.
std::string print_frame(const Inference& inference);
std::string print_frame_json(const Inference& inference);

}  // namespace skillet::tools
