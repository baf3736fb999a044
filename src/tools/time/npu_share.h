// How much of a model's work is on the NPU: of its multiply-accumulates, and of the time that the CPU alone would take,
// which counts operations without any. `skillet check --require` asks for a share of both.
// Called by `skillet check`.
// Must not know: what is printed around it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// By operation of the model.
struct ModelWork {
  std::vector<uint64_t> macs;
  std::vector<uint64_t> cpu_ps;  // predicted, of the CPU of such a board; empty: the chip is not timed

  uint64_t all_macs() const;
};
ModelWork work_of(const ir::Graph& model, std::string_view chip);

struct NpuShare {
  // In percent. Below 0: there are no multiply-accumulates; the times are not known.
  double macs = -1, cpu_time = -1;
  double ops = 0;  // of the operations, where neither of them says anything

  // The smallest of what is known.
  double percent() const;
  bool reaches(double percent) const;
  // "99.9 % of the MACs, 98.2 % of the CPU's time"
  std::string print() const;
  // "99.9 %", "-".
  std::string print_macs() const;
  std::string print_cpu_time() const;
};

nlohmann::json percent_or_null(double percent);

// Of the whole network, after the passes and the partition.
NpuShare npu_share(const ModelWork& work, const compile::Compiled& compiled, std::string_view chip);
// Of whole operations of the model.
NpuShare npu_share(const ModelWork& work, const std::vector<bool>& on_npu);

}  // namespace skillet::tools
