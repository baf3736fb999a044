// choose_offload(): decides by predicted times whether a part, or which runs of its ops, are profitable to offload. A
// pure function of its arguments. Called by compile.cpp; runtime/cost_model.h makes cost models.
// Must not know: how a time is found, anything of one vendor.
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

// Which parts go to the NPU. all: everything that the chip takes. work: parts with enough work per byte that enters or
// leaves (Options::min_macs_per_byte). predicted: parts that are faster there; like `work` for chips that are not
// timed.
enum class PartitionBy : uint8_t { all, work, predicted };
constexpr std::array<std::string_view, 3> kPartitionByNames = {"all", "work", "predicted"};
std::optional<PartitionBy> partition_by_from_name(std::string_view name);

struct CostModel {
  ProgramCosts program_costs;
  CpuSpeed cpu;
  int cpu_cores = 1;                                 // number of cores that `cpu` describes
  double submit_us = 0;                              // for each program, in addition to its jobs
  double in_bytes_per_us = 1, out_bytes_per_us = 1;  // from host memory to device memory, and back
  // Error of predictions, as a share: for a smaller gain a part is neither divided nor moved to the CPU.
  double margin = 0;
};

// Times of one way to run ops; they add up.
struct Times {
  double npu_us = 0;       // of the NPU's units
  double start_us = 0;     // for starting tasks and programs, and their completion
  double transfer_us = 0;  // for copies between host and device, change of layout included
  double cpu_us = 0;
  uint64_t crossing_bytes = 0;  // enter or leave the NPU
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
  std::vector<Span> on_npu;  // in order, not adjacent
  Times times;

  size_t npu_ops() const;
};
struct OffloadChoice {
  std::vector<ir::OpId> ops;              // ops of the part, in the graph after the passes
  std::vector<Alternative> alternatives;  // all on the NPU; all on the CPU; the best one, if it is neither
  size_t chosen = 0;
};
// True if the CPU is faster by more than the margin.
bool is_cpu_faster(double cpu_us, double npu_us, const CostModel& cost_model);

// True if the part has an operation that no CPU runs, such as a vendor compiler's command stream. It is never compared.
bool needs_npu(const ir::Graph& part);

// Why a part has too little work to offload (Options::min_macs_per_byte); empty: it is profitable.
std::string why_not_worth(const ir::Graph& part, uint64_t min_macs_per_byte);

// `program`: that of `part`. Chooses all ops on the NPU, or none if the CPU is faster; another set of runs of ops is
// chosen only if it is faster than that by more than the margin. Error: the costs are not known. `cpu_us`: by op of
// `part`, its time on the CPU; empty: as predicted by `cost_model`.
Result<OffloadChoice> choose_offload(const ir::Graph& part, const npu::Program& program, const CostModel& cost_model,
                                     std::span<const double> cpu_us = {});

// The times of a part that is all on the NPU.
Result<Times> times_on_npu(const ir::Graph& part, const npu::Program& program, const CostModel& cost_model);

// Why `choice` moves ops to the CPU. `graph`: after the passes; `cpu_cores`: number of cores that its CPU times are
// for. Counts operations of the model file.
std::string why_moved(const ir::Graph& graph, std::span<const ir::OpId> moved, const OffloadChoice& choice,
                      int cpu_cores);

// The whole network; `what`: for example "all that the chip takes on the NPU".
struct NetworkTimes {
  std::string what;
  Times times;
  bool is_chosen = false;
};

// One line for each alternative of the network and of each part; `graph`: after the passes.
std::string print(const ir::Graph& graph, const std::vector<NetworkTimes>& network,
                  const std::vector<OffloadChoice>& choices);

}  // namespace skillet::compile
