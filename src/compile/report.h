// Where each op runs, and why: rows for tables and JSON, and a text for people. The one place that words it.
// Called by tools, runtime/ and tests.
// Must not know: how a report is laid out on a terminal.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace skillet::compile {

struct OpRow {
  ir::OpId op = 0;
  int32_t source = -1;       // Op::source_index
  std::string number;        // the same for people: "12"; "-": the model file has no such operation
  std::string kind, output;  // "CONV_2D"; "1x112x112x32" of the first output
  size_t part = 0;
  bool on_npu = false;
  std::string why;                                // why not on the NPU, or "unproven: ..."
  std::string plain;                              // the same without the names of tensors
  bool nowhere = false;                           // nor does the CPU have a kernel for it: who knows the CPU says so
  bool unproven = false;                          // on the NPU, though no known driver ever ran this on silicon
  std::string note;                               // what passes changed about it that may move its result
  npu::Remedy remedy = npu::Remedy::none;         // where it is not on the NPU
  std::vector<const npu::Assumption*> stands_on;  // on the NPU: what its program rests on that nobody has seen
  double cpu_us = -1;  // what it takes there, predicted by who knows the chip's CPU; below 0: not known
};

// What a report says of a part.
struct PartNote {
  bool on_npu = false;
  std::vector<ir::OpId> ops;
  std::string note;      // follows "part 0 on NPU, 3 ops"; may be empty
  std::string fallback;  // why an NPU part runs on the CPU; empty: it does not
};

// By op of `graph`.
std::vector<OpRow> rows(const ir::Graph& graph, std::span<const OpPlace> ops, std::span<const PartNote> parts);
std::vector<OpRow> rows(const Compiled& compiled);

// How `op` is described without the names of the graph's tensors, whatever characters these have, and without its own
// number: "'a' is float32" is "a tensor is float32".
std::string without_names(std::string_view reason, const ir::Graph& graph, ir::OpId op);

// Of the model's own operations, whatever passes made of them: one is on the NPU when all that compute it are.
struct ModelUse {
  size_t npu_ops = 0, ops = 0;
  size_t part_ops = 0;    // computed by several, some of them on the NPU
  size_t folded_ops = 0;  // that nothing computes any more: constants, shapes, what others took in
};

// How much of the model is on the NPU; a line per part, then its ops with the reasons.
std::string print(const ModelUse& use, const ir::Graph& graph, std::span<const OpPlace> ops,
                  std::span<const PartNote> parts);
std::string print(const Compiled& compiled);

// Why by predicted time each part is where it is: the network, then the parts that were compared.
std::string print_offload(const Compiled& compiled);

// "op 27: AVERAGE_POOL_2D becomes DEPTHWISE_CONV_2D 7x7 (lower_average_as_depthwise)"; and a line for each.
std::string print(const passes::Rewrite& rewrite);
std::string print(std::span<const passes::Rewrite> rewrites);

// By operation of the model file that is gone: the one that computes its results now.
std::map<int32_t, int32_t> absorbed_by(std::span<const passes::Rewrite> rewrites);

// On the NPU, and not known to need no job there.
bool works_on_npu(const Part& part);
size_t npu_parts(const Compiled& compiled);  // of these
// By op of the compiled graph: jobs of the NPU compute it. A part whose bytes stay as they are has none.
std::vector<bool> works_on_npu(const Compiled& compiled);
constexpr const char* kNoJob = "its part needs no job: the bytes stay as they are";
// Rows of ops that the NPU has and does nothing for say so.
void mark_idle(const std::vector<bool>& works, std::vector<OpRow>& rows);

// `on_npu`: by op of `graph`.
ModelUse model_use(const ir::Graph& graph, std::span<const passes::Rewrite> rewrites, size_t model_ops,
                   const std::vector<bool>& on_npu);
ModelUse model_use(const Compiled& compiled);
// "4 of 9 operations (2 more in part, 1 folded)": of the model's own, as all front doors count them.
std::string print(const ModelUse& use);

// `of_model`: by op of the model, how much work it is. By op of the compiled graph: what it does of that, whatever
// passes made of it; ops that were made of one share its work as their own, `of_compiled`, is shared.
std::vector<uint64_t> share_work(const Compiled& compiled, std::vector<uint64_t> of_model,
                                 std::span<const uint64_t> of_compiled);
// The same of multiply-accumulates.
std::vector<uint64_t> model_macs(const Compiled& compiled, std::vector<uint64_t> macs);

}  // namespace skillet::compile
