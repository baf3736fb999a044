// A list of layers from a CSV file: a network in execution order, or single measured layers (a table).
// Called by `skillet plan --layers`.
// Must not know: chips, times.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/timing.h"

namespace skillet::tools {

struct LayerFile {
  std::string name;  // file name without folder and extension
  sim::Fusion fusion = sim::Fusion::network;
  std::vector<sim::Layer> layers;
  std::vector<std::string> unknown;  // unknown kinds of layers: timed as copies
};

// Columns of a network: id, op, inputs, in_h, in_w, in_c, out_h, out_w, out_c, kh, kw, sh, dh, act, weight_elems.
// Columns of a table: id, op, in_c, in_h, in_w, out_c, out_h, out_w, kh, kw, stride, act, fused_add, dtype. Other
// columns are ignored. The file is untrusted: an error has line and column.
Result<LayerFile> read_layers(const std::string& path);
Result<LayerFile> parse_layers(std::string_view text, std::string name);

}  // namespace skillet::tools
