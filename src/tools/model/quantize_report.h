// What `skillet quantize` was asked for and found, and how it says that.
// Called by quantize.cpp.
// Must not know: how a network is quantized.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "graph/import/import.h"
#include "graph/quantize/quantize.h"
#include "tools/cli/session_flags.h"
#include "tools/model/placed.h"
#include "tools/run/difference.h"

namespace skillet::tools {

struct QuantizeOptions {
  std::string model, output, data, device, float_pixels;
  tflite::ImportOptions import_as;
  SessionFlags session;
  double error = 0.4;
  bool json = false;
};

// The new network's outputs against the model's, on data that neither calibrated.
struct QuantizeOutputs {
  size_t inferences = 0, same_class = 0;
  bool are_held = false;     // else those that calibrated: there are no others
  bool has_classes = false;  // the first output is a row of scores
  double lost_margin = -1;   // of another best class: how far the model's is ahead there, in stored units
  double signal = 0, noise = 0;
  std::vector<std::string> names;                 // of the outputs
  std::vector<Difference> differences, noise_of;  // by output; how far noise on the inputs moves the model's

  double ratio_db() const { return 10 * std::log10(signal / noise); }
};

struct QuantizeReport {
  quantize::Quantized quantized;
  std::string quantizer;            // of a float model: what gave it 8 bits, and its version
  size_t model_layers = 0;          // that have several scales
  std::vector<std::string> others;  // that have, too, and stay as they are: kinds of operations
  size_t seen = 0, held = 0, found = 0, repeats = 0;
  QuantizeOutputs outputs;
  std::optional<Placed> before, after;  // on the device, if one was named
  std::string chip;
  double cpu_alone_us = -1;  // below 0: not known
};

// "1 inference"
std::string inferences(size_t count);

void print_text(const QuantizeOptions& options, const QuantizeReport& report);
void print_json(const QuantizeOptions& options, const QuantizeReport& report);

}  // namespace skillet::tools
