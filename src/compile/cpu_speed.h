// CpuSpeed: predicted time of an op on the CPU of a board, by kind of work and type.
// Called by offload.cpp (is a part profitable to offload), runtime/cost_model.cpp, tools.
// Must not know: chips, devices, our kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "graph/ir/graph.h"

namespace skillet::compile {

enum class CpuWork : uint8_t { dense, depthwise, element, table, copy };
constexpr std::array<std::string_view, 5> kCpuWorkNames = {"dense", "depthwise", "element", "table", "copy"};
enum class CpuType : uint8_t { uint8, int8, floats };
constexpr std::array<std::string_view, 3> kCpuTypeNames = {"uint8", "int8", "float"};

CpuWork cpu_work_of(const ir::Graph& graph, ir::OpId op);

struct CpuSpeed {
  // Per microsecond: multiply-accumulates of dense and depthwise filters, bytes read and written by other ops.
  struct Rates {
    double dense = 1, depthwise = 1, element = 1, table = 1, copy = 1;
  };
  std::array<Rates, 3> rates;  // by type

  double us(const ir::Graph& graph, ir::OpId op) const;
  // The same operation on tensors of another type.
  double us(const ir::Graph& graph, ir::OpId op, CpuType type) const;
  double copy_bytes_per_us() const { return rates[static_cast<size_t>(CpuType::int8)].copy; }
};

// Equally fast with all types.
CpuSpeed plain_cpu(double macs_per_us, double bytes_per_us);
// The speed of `cores` cores of one type ("Cortex-A76": 76) that compute together; none: the type is not known.
std::optional<CpuSpeed> cpu_speed_of(int core, double clock_ghz, int cores);

}  // namespace skillet::compile
