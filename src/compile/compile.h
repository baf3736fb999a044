// compile(): divides a graph into parts for one target, with device programs for the NPU, ops for the CPU kernels, and
// a reason for each op. A pure function of its arguments. Called by runtime/, tools, the delegate and the golden tests.
// Must not know: devices, file formats, anything of one vendor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compile/offload.h"
#include "graph/ir/graph.h"
#include "graph/passes/divide/bands.h"
#include "graph/passes/passes.h"
#include "npu/driver.h"

namespace skillet::compile {

using passes::Target;

// Why the CPU computes an op of the model, by Op::source_index.
using Kept = std::map<int32_t, npu::Support>;

// Which runs of layers are divided among cores: those that are predicted to pay; or, always into as many bands as
// possible, those predicted to be fastest even if that does not pay or, for tests, the longest.
enum class Runs : uint8_t { that_pay, fastest, longest };

struct Options {
  npu::CompileOptions driver;
  // Compiles parts instead of the driver: one that tunes, or caches programs. Borrowed; null: the driver compiles.
  const npu::Driver* compiler = nullptr;
  // Parts with fewer multiply-accumulates per byte that enters or leaves stay on the CPU. 0: no part does.
  uint64_t min_macs_per_byte = 0;
  // Takes precedence: parts, and ops of parts, that are predicted to be faster on the CPU stay there. Borrowed. Null,
  // or a part whose cost cannot be predicted: min_macs_per_byte decides. Not used for the tuning `recorded`.
  const CostModel* cost_model = nullptr;
  // Maximum number of cores, and so of bands of rows, for a run of layers; 1: runs are not divided. Not used if
  // intermediate results are kept, or for the tuning `recorded`.
  int cores = 1;
  Runs runs = Runs::that_pay;
  npu::Measured measured = {};  // of the device, replace the chip's parameters
  // Passes may replace ops by others that the chip takes better, with the same results, or within a step if
  // Rewrite::off is set. Not used for `recorded`.
  bool rewrite = true;
  // An op that the driver's compiler refuses goes to the CPU; false: it is an error.
  bool leave_out = true;
  Kept kept = {};  // ops that the CPU computes in the model's form
};

// For networks with inputs of free sizes.
constexpr const char* kNothingPredicted =
    "sizes are free, and 1 until somebody sets them: nothing is predicted of them, the NPU gets all it takes";

// Where an op runs, and the reason.
struct OpPlace {
  bool on_npu = false;
  std::string reason;     // why not on the NPU, or what is unproven about it
  bool unproven = false;  // on the NPU, though no known driver ever ran this on silicon
  size_t part = 0;        // index into the parts
  std::string note;       // what passes changed that may affect its result, or could not change; empty: nothing
  npu::Remedy remedy = npu::Remedy::none;         // if it is not on the NPU: what can be done about it
  std::vector<const npu::Assumption*> stands_on;  // if it is on the NPU
  bool verified = false;                          // on the NPU, and this device was seen to compute it right
};

// By Op::source_index of the model: keys that the caller has for an op and its constants.
using ModelKeys = std::multimap<int32_t, std::string>;

// One core's share of a divided part.
struct Band {
  passes::Band rows;
  npu::Program program;  // of rows.graph
};

struct Part {
  passes::Partition partition;
  std::optional<npu::Program> program;  // none for the CPU, bands, and plans
  std::vector<Band> bands;              // together they compute the part; none: it is not divided
  bool is_piece = false;                // the division made it from a larger part
  std::string note;                     // the decision about bands, as text; empty: none
  double compile_ms = 0;
  bool is_weighed = false;  // compared, and found profitable to offload
  std::string key;          // for callers: of its programs; empty: not known
};

// A program of a part, and what it was compiled from.
struct PartProgram {
  const ir::Graph* graph = nullptr;
  npu::Program* program = nullptr;
  std::string band;  // ", band 1"; empty: the part is not divided
};
std::vector<PartProgram> programs(Part& part);

// Time of comparisons with the CPU, and how many things were confirmed. Zero: everything was known.
struct Verified {
  double ms = 0;
  size_t assumptions = 0, parts = 0;

  Verified& operator+=(const Verified& other) {
    ms += other.ms, assumptions += other.assumptions, parts += other.parts;
    return *this;
  }
};

struct Compiled {
  // The graph after the passes, or the model if nothing is on the NPU. Tensors keep their ids; ops may be reordered
  // (Op::source_index). Ops have the model's own weights: parts on the NPU may have others.
  ir::Graph graph;
  std::vector<Part> parts;  // in execution order
  std::vector<OpPlace> ops;
  std::vector<passes::WeightChange> weight_changes;  // of ops on the NPU
  std::vector<passes::Rewrite> rewrites;             // of the model's ops by passes, in order
  std::vector<OffloadChoice> choices;                // for parts by predicted time, in the order of the decisions
  std::optional<ir::Graph> compared;                 // graph of the choices, if it is not `graph`
  // By predicted time: everything that the chip takes on the NPU; all on the CPU; as divided. Empty: a cost is unknown.
  std::vector<NetworkTimes> network;
  size_t model_ops = 0;  // before the passes
  double passes_ms = 0;
  Verified verified;     // filled in by the caller
  ModelKeys model_keys;  // for callers that repeat the comparison
  std::string kept_in;   // for callers: the file that this was read from or stored in; empty: none
};

// Runs the passes, divides the graph and compiles the parts. If a part does not compile, the op at fault (the last one
// of the shortest prefix of the part's ops that does not compile) goes to the CPU, with the compiler's error as its
// reason, and the graph is divided again. Errors: the graph is malformed, the options are wrong (see Driver::compile),
// or options.leave_out is false.
Result<Compiled> compile(ir::Graph graph, const Target& target, const Options& options);

// The same without programs: only what the driver would take.
Result<Compiled> plan(ir::Graph graph, const Target& target, const Options& options);

}  // namespace skillet::compile
