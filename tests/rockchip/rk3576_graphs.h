// Texts of graphs for the simulated RK3576.
// Called by rk3576_graphs_test.cpp, rk3576_scales_test.cpp.
// Must not know: what the graphs are for.
#pragma once

#include "graph_judge.h"

namespace skillet::rockchip_graphs {

constexpr const char* kDevice = "sim:rk3576";

inline std::string sum(const char* shape, float first, float second, float out, const char* more = "",
                       const char* kind = "ADD", const char* type = "int8") {
  const int zero = std::string_view(type) == "int8" ? -7 : 121;
  return tensor(0, shape, first, zero, type) + tensor(1, shape, second, zero + 10, type) +
         tensor(2, shape, out, zero + 3, type) +
         fmt::format("inputs 0 1\noutputs 2\nop 0 {} in=[0 1] out=[2] {}\n", kind, more);
}

}  // namespace skillet::rockchip_graphs
