// weigh(): whether a part is worth the way to the NPU and back, or which run of its ops is, by predicted times.
// A function of its arguments alone. Called by compile.cpp; runtime/judge.h makes prices.
// Must not know: how a time is found, a vendor's anything.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compile/tune.h"
#include "driver/program.h"
#include "ir/graph.h"

namespace skillet::compile {

// How it is decided which parts go to the NPU. work: those that do enough for each byte that enters or leaves
// (Options::min_macs_per_byte). predicted: those that are faster there; of chips that are not timed, as `work`.
enum class PartitionBy : uint8_t { work, predicted };
constexpr std::array<std::string_view, 2> kPartitionByNames = {"work", "predicted"};
std::optional<PartitionBy> partition_by_from_name(std::string_view name);

// What the CPU of a board takes for an op: so much for its multiply-accumulates, so much for the bytes of its tensors.
struct CpuSpeed {
  double macs_per_us = 1, bytes_per_us = 1;
  double us(const ir::Graph& graph, ir::OpId op) const;
};

struct Prices {
  Judge judge;  // of programs
  CpuSpeed cpu;
  double submit_us = 0;                              // for each program
  double in_bytes_per_us = 1, out_bytes_per_us = 1;  // from the host's memory to the device's, and back
  // Share of a time on the NPU that may be less: what is to go to the CPU must be faster all the same.
  double doubt = 0;
};

// A way to run a part: its ops from `first` up to `last` on the NPU, the others on the CPU.
struct Alternative {
  size_t first = 0, last = 0;
  double npu_us = 0;  // of these ops, and for starting them
  double way_us = 0;  // of what enters and leaves
  double cpu_us = 0;  // of the others

  double us() const { return npu_us + way_us + cpu_us; }
};
struct Weighing {
  std::vector<ir::OpId> ops;              // of the part, in the graph after the passes
  std::vector<Alternative> alternatives;  // all on the NPU; all on the CPU; the best run of ops where it is another one
  size_t chosen = 0;
};
// `program` is that of `part`. Error: the judge cannot price it.
Result<Weighing> weigh(const ir::Graph& part, const driver::Program& program, const Prices& prices);

// Why the ops that `weighing` moves to the CPU are there.
std::string why_moved(const Weighing& weighing);

// For people: a line for each alternative of each part; `graph` is the one after the passes.
std::string print(const ir::Graph& graph, const std::vector<Weighing>& weighings);

}  // namespace skillet::compile
