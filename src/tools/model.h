// A model file as a graph ready to be divided, the target a --device option names, and the cost of its ops.
// Called by run, check and compile.
// Must not know: how a session runs.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "driver/driver.h"
#include "ir/graph.h"

namespace skillet::tools {

// The imported graph; errors start with the path.
Result<ir::Graph> import_model(const std::string& path);

// A simulated chip that --device names: "sim:a311d". Nothing for "cpu" and "auto" (until real devices are driven).
struct Target {
  std::optional<driver::Chip> chip;
  const driver::Driver* driver = nullptr;  // null: the CPU
  std::string device;                      // "sim:a311d" or "cpu"
};
Result<Target> find_target(const std::string& device);
constexpr const char* kDeviceHelp = "auto, cpu, or a simulated chip such as sim:a311d (see skillet devices)";

// Multiply-accumulates of a convolution or matrix product; 0 for other ops.
uint64_t op_macs(const ir::Graph& graph, ir::OpId op);
// "1x112x112x32" of the first output.
std::string output_shape(const ir::Graph& graph, ir::OpId op);

}  // namespace skillet::tools
