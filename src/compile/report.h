// Where each op runs, and why: rows for tables and JSON, and text. All such texts are formatted here.
// Called by tools, runtime/ and tests.
// Must not know: the layout of a report on a terminal.
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
  std::string number;        // `source` as text: "12"; "-": the model file has no such operation
  std::string kind, output;  // "CONV_2D"; "1x112x112x32" of the first output
  size_t part = 0;
  bool on_npu = false;
  std::string why;                                // why not on the NPU, or "unproven: ..."
  std::string plain;                              // `why` without the names of tensors
  bool nowhere = false;                           // the CPU has no kernel for it either; set by code that knows the CPU
  bool unproven = false;                          // on the NPU, though no known driver ever ran this on silicon
  std::string note;                               // what passes changed that may affect its result
  npu::Remedy remedy = npu::Remedy::none;         // if it is not on the NPU
  std::vector<const npu::Assumption*> stands_on;  // if it is on the NPU: the assumptions that its program stands on
  double cpu_us = -1;                             // predicted time on the chip's CPU; below 0: not known
};

// Remarks of a report about a part.
struct PartNote {
  bool on_npu = false;
  std::vector<ir::OpId> ops;
  std::string note;      // follows "part 0 on NPU, 3 ops"; may be empty
  std::string fallback;  // why an NPU part runs on the CPU; empty: it runs on the NPU
};

// By op of `graph`.
std::vector<OpRow> rows(const ir::Graph& graph, std::span<const OpPlace> ops, std::span<const PartNote> parts);
std::vector<OpRow> rows(const Compiled& compiled);

// The reason without the names of the graph's tensors, whatever their characters, and without the op's own number: "'a'
// is float32" becomes "a tensor is float32".
std::string without_names(std::string_view reason, const ir::Graph& graph, ir::OpId op);

// Counts the model's own operations: one is on the NPU if all ops that compute it are.
struct ModelUse {
  size_t npu_ops = 0, ops = 0;
  size_t part_ops = 0;    // computed by several ops, of which some are on the NPU
  size_t folded_ops = 0;  // not computed any more: constants, shapes, absorbed ops
};

// How much of the model is on the NPU; a line per part, then its ops with the reasons.
std::string print(const ModelUse& use, const ir::Graph& graph, std::span<const OpPlace> ops,
                  std::span<const PartNote> parts);
std::string print(const Compiled& compiled);

// Why each part is on the NPU or the CPU by predicted time: the network, then the parts that were compared.
std::string print_offload(const Compiled& compiled);

// "op 27: AVERAGE_POOL_2D becomes DEPTHWISE_CONV_2D 7x7 (lower_average_as_depthwise)"; the second: one line per
// rewrite.
std::string print(const passes::Rewrite& rewrite);
std::string print(std::span<const passes::Rewrite> rewrites);

// By operation of the model file that was removed: the operation that computes its results now.
std::map<int32_t, int32_t> absorbed_by(std::span<const passes::Rewrite> rewrites);

// True if the part is on the NPU, and not known to need no job there.
bool works_on_npu(const Part& part);
size_t npu_parts(const Compiled& compiled);  // number of these parts
// By op of the compiled graph: true if jobs of the NPU compute it. A part that leaves its bytes unchanged has no job.
std::vector<bool> works_on_npu(const Compiled& compiled);
constexpr const char* kNoJob = "its part needs no job: the bytes stay as they are";
// Marks rows of ops that are on the NPU but need no job.
void mark_idle(const std::vector<bool>& works, std::vector<OpRow>& rows);

// `on_npu`: by op of `graph`.
ModelUse model_use(const ir::Graph& graph, std::span<const passes::Rewrite> rewrites, size_t model_ops,
                   const std::vector<bool>& on_npu);
ModelUse model_use(const Compiled& compiled);
// "4 of 9 operations (2 more in part, 1 folded)": the model's own operations, as all front ends count them.
std::string print(const ModelUse& use);

// `of_model`: work of each op of the model. Returns, by op of the compiled graph, its share of that work; ops made from
// one op share its work in proportion to `of_compiled`.
std::vector<uint64_t> share_work(const Compiled& compiled, std::vector<uint64_t> of_model,
                                 std::span<const uint64_t> of_compiled);
// The same for multiply-accumulates.
std::vector<uint64_t> model_macs(const Compiled& compiled, std::vector<uint64_t> macs);

}  // namespace skillet::compile
