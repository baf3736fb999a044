// Options and results of `skillet quantize`, and their report.
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

// Compares the new network's outputs with the model's, on data that was not used for calibration.
struct QuantizeOutputs {
  size_t inferences = 0, same_class = 0;
  bool are_held = false;     // false: calibration data was used, as there is no other
  bool has_classes = false;  // the first output is a row of scores
  double lost_margin = -1;   // where the best class differs: largest lead of the model's over its second (stored)
  double signal = 0, noise = 0;
  std::vector<std::string> names;                 // of the outputs
  std::vector<Difference> differences, noise_of;  // by output; noise_of: effect of input noise on the model's

  double ratio_db() const { return 10 * std::log10(signal / noise); }
};

struct QuantizeReport {
  quantize::Quantized quantized;
  std::string quantizer;            // for a float model: the quantizer and its version
  size_t model_layers = 0;          // layers with several scales
  std::vector<std::string> others;  // kinds of operations with several scales that stay unchanged
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
