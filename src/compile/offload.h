// choose_offload(): whether a part is profitable to offload, or which runs of its ops are, by predicted times.
// A function of its arguments alone. Called by compile.cpp; runtime/cost_model.h makes cost models.
// Must not know: how a time is found, a vendor's anything.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compile/cpu_speed.h"
#include "compile/tune.h"
#include "graph/ir/graph.h"
#include "program/program.h"

namespace skillet::compile {

// How it is decided which parts go to the NPU. all: those that the chip takes. work: of these, those that do enough for
// each byte that enters or leaves (Options::min_macs_per_byte). predicted: those that are faster there; of chips that
// are not timed, as `work`.
enum class PartitionBy : uint8_t { all, work, predicted };
constexpr std::array<std::string_view, 3> kPartitionByNames = {"all", "work", "predicted"};
std::optional<PartitionBy> partition_by_from_name(std::string_view name);

struct CostModel {
  ProgramCosts program_costs;
  CpuSpeed cpu;
  int cpu_cores = 1;                                 // that `cpu` stands for
  double submit_us = 0;                              // for each program, beside its jobs
  double in_bytes_per_us = 1, out_bytes_per_us = 1;  // from the host's memory to the device's, and back
  // Share of a time that the prediction may be wrong by: a part is not divided, or left to the CPU, for less.
  double margin = 0;
};

// What a way to run ops takes; the times add up.
struct Times {
  double npu_us = 0;       // of the NPU's units
  double start_us = 0;     // for starting tasks and programs, and hearing of their ends
  double transfer_us = 0;  // for copies between host and device, change of layout included
  double cpu_us = 0;
  uint64_t crossing_bytes = 0;  // that enter or leave the NPU
  size_t parts = 0;             // on the NPU

  double us() const { return npu_us + start_us + transfer_us + cpu_us; }
  Times& operator+=(const Times& other);
};

// Ops from `first` up to `last`.
struct Span {
  size_t first = 0, last = 0;
  bool operator==(const Span&) const = default;
};
// A way to run a part: these ops on the NPU, the others on the CPU.
struct Alternative {
  std::vector<Span> on_npu;  // in order, apart from each other
  Times times;

  size_t npu_ops() const;
};
struct OffloadChoice {
  std::vector<ir::OpId> ops;              // of the part, in the graph after the passes
  std::vector<Alternative> alternatives;  // all on the NPU; all on the CPU; the best where it is another one
  size_t chosen = 0;
};
// An NPU computes unless the CPU is faster by more than the margin.
bool is_cpu_faster(double cpu_us, double npu_us, const CostModel& cost_model);

// Whether it has an operation that no CPU runs, such as a command stream of a vendor's compiler: it is never weighed.
bool needs_npu(const ir::Graph& part);

// By work (Options::min_macs_per_byte): why a part is not profitable to offload; empty: it is.
std::string why_not_worth(const ir::Graph& part, uint64_t min_macs_per_byte);

// `program` is that of `part`. All its ops stay on the NPU, or none where the CPU is faster; of all other sets of runs
// of ops the fastest is chosen where that is faster by more than the margin. Error: the costs are not known.
// `cpu_us`: by op of `part`, what the CPU takes; none: as `cost_model` has it.
Result<OffloadChoice> choose_offload(const ir::Graph& part, const npu::Program& program, const CostModel& cost_model,
                                     std::span<const double> cpu_us = {});

// The same of a part as it is, all on the NPU.
Result<Times> times_on_npu(const ir::Graph& part, const npu::Program& program, const CostModel& cost_model);

// Why the ops that `choice` moves to the CPU are there.
// `graph`: after the passes; `cpu_cores`: that its CPU times stand for. Operations are counted as the model file has
// them.
std::string why_moved(const ir::Graph& graph, std::span<const ir::OpId> moved, const OffloadChoice& choice,
                      int cpu_cores);

// The whole network; `what` is "all that the chip takes on the NPU", ...
struct NetworkTimes {
  std::string what;
  Times times;
  bool is_chosen = false;
};

// For people: a line for each alternative of the network and of each part; `graph` is the one after the passes.
std::string print(const ir::Graph& graph, const std::vector<NetworkTimes>& network,
                  const std::vector<OffloadChoice>& choices);

}  // namespace skillet::compile
