// Share of a model's work on the NPU: of its multiply-accumulates, and of the CPU's time for the whole model, which
// also counts operations without multiply-accumulates. `skillet check --require` compares both.
// Called by `skillet check`.
// Must not know: the output around it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// Work by operation of the model.
struct ModelWork {
  std::vector<uint64_t> macs;
  std::vector<uint64_t> cpu_ps;  // predicted for the CPU of the chip's board; empty: the chip has no timing model

  uint64_t all_macs() const;
};
ModelWork work_of(const ir::Graph& model, std::string_view chip);

struct NpuShare {
  // In percent. Below 0: the model has no multiply-accumulates; the times are not known.
  double macs = -1, cpu_time = -1;
  double ops = 0;  // share of the operations, if both are unknown

  // The smaller of the known shares.
  double percent() const;
  bool reaches(double percent) const;
  // "99.9 % of the MACs, 98.2 % of the CPU's time"
  std::string print() const;
  // "99.9 %", "-".
  std::string print_macs() const;
  std::string print_cpu_time() const;
};

nlohmann::json percent_or_null(double percent);

// Share of the whole network, after the passes and the partition.
NpuShare npu_share(const ModelWork& work, const compile::Compiled& compiled, std::string_view chip);
// Share by whole operations of the model.
NpuShare npu_share(const ModelWork& work, const std::vector<bool>& on_npu);

}  // namespace skillet::tools
