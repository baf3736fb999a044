// Times of a network on this machine's CPU, as a row for `./x calibrate --cpu-rows` in the columns of published times.
// Called by `skillet bench --row`.
// Must not know: chips, devices.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/ir/graph.h"

namespace skillet::tools {

// Name of the core ("A76") from the text of /proc/cpuinfo, of several kinds the largest; empty: unknown.
std::string core_name(std::string_view cpuinfo);

// A header and a row; `op_ms`: by op, on one core. The note column has the time of each kind of work.
std::string cpu_row(const std::string& model, const ir::Graph& graph, double ms, std::span<const double> op_ms);

}  // namespace skillet::tools
