// compile(): a graph as parts for one target, device programs for the NPU and ops for the CPU kernels, with a reason
// for each op. A function of its arguments alone. Called by runtime/, tools, the delegate and the judges of recorded
// jobs: code that wants to know what runs where. Must not know: devices, file formats, a vendor's anything.
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

// By Op::source_index: why the CPU computes it.
using Kept = std::map<int32_t, npu::Support>;

// Which runs of layers are divided among cores: those that are predicted to pay; or, into as many bands as there may
// be, those that are predicted to be the fastest, whether they pay or not, or, for tests, the longest.
enum class Runs : uint8_t { that_pay, fastest, longest };

struct Options {
  npu::CompileOptions driver;
  // Compiles parts in the driver's place: one that tunes, or keeps what it compiled. Borrowed; null: the driver does.
  const npu::Driver* compiler = nullptr;
  // Parts that do fewer multiply-accumulates for each byte that enters or leaves stay on the CPU. 0: none do.
  uint64_t min_macs_per_byte = 0;
  // In its place: parts, and ops of parts, that are predicted to be faster on the CPU stay there. Borrowed; null, and
  // if a part's cost cannot be predicted: min_macs_per_byte decides. Never for the tuning `recorded`.
  const CostModel* cost_model = nullptr;
  // Runs of layers may be divided into at most so many bands of rows, for as many cores; 1: none are. Never where
  // intermediate results are kept, or for the tuning `recorded`.
  int cores = 1;
  Runs runs = Runs::that_pay;
  npu::Measured measured = {};  // of the device, for these decisions
  // Passes may put ops with the same results, or results within a step where Rewrite::off says so, where the chip takes
  // them better. Never for `recorded`.
  bool rewrite = true;
  // An op that the driver's compiler refuses goes to the CPU; false: that is an error.
  bool leave_out = true;
  Kept kept = {};  // as the model has it
};

// Of networks with inputs of free sizes.
constexpr const char* kNothingPredicted =
    "sizes are free, and 1 until somebody sets them: nothing is predicted of them, the NPU gets all it takes";

// Where an op runs, and why.
struct OpPlace {
  bool on_npu = false;
  std::string reason;     // why not on the NPU, or what is unproven about it
  bool unproven = false;  // on the NPU, though no known driver ever ran this on silicon
  size_t part = 0;        // index into the parts
  std::string note;       // what passes changed about it that may move its result, or could not; empty: nothing
  npu::Remedy remedy = npu::Remedy::none;         // where it is not on the NPU: what can be done about it
  std::vector<const npu::Assumption*> stands_on;  // where it is
  bool verified = false;                          // there, and this device was seen to compute it right
};

// By Op::source_index of the model: what somebody else calls an op and its constants.
using ModelKeys = std::multimap<int32_t, std::string>;

// What one core does of a part that is divided.
struct Band {
  passes::Band rows;
  npu::Program program;  // of rows.graph
};

struct Part {
  passes::Partition partition;
  std::optional<npu::Program> program;  // none for the CPU, bands, and where only a plan was asked for
  std::vector<Band> bands;              // which compute the part together; none: it is in one piece
  bool is_piece = false;                // of what the division made one part
  std::string note;                     // what was thought about bands, for people; empty: nothing
  double compile_ms = 0;
  bool is_weighed = false;  // and found profitable to offload
};

// A program of a part, and what it was compiled from.
struct PartProgram {
  const ir::Graph* graph = nullptr;
  npu::Program* program = nullptr;
  std::string band;  // ", band 1"; empty: of the part in one piece
};
std::vector<PartProgram> programs(Part& part);

// What comparing a device with the CPU took, and what was right there. Nothing: all was known.
struct Verified {
  double ms = 0;
  size_t assumptions = 0, parts = 0;

  Verified& operator+=(const Verified& other) {
    ms += other.ms, assumptions += other.assumptions, parts += other.parts;
    return *this;
  }
};

struct Compiled {
  // After the passes, or where nothing is on the NPU the model; tensors have the ids they had, ops may have moved
  // (Op::source_index). Ops have the model's own weights: parts for the NPU may have others.
  ir::Graph graph;
  std::vector<Part> parts;  // in execution order
  std::vector<OpPlace> ops;
  std::vector<passes::WeightChange> weight_changes;  // of ops on the NPU
  std::vector<passes::Rewrite> rewrites;             // what passes made of the model's ops, in order
  std::vector<OffloadChoice> choices;                // of parts by predicted time, in the order in which they were made
  std::optional<ir::Graph> compared;                 // whose parts these were, if not those of `graph`
  // By predicted time: all that the chip takes on the NPU, all on the CPU, as divided. Empty: some cost is unknown.
  std::vector<NetworkTimes> network;
  size_t model_ops = 0;  // before the passes
  double passes_ms = 0;
  Verified verified;     // by somebody else
  ModelKeys model_keys;  // where somebody goes on comparing
};

// Passes, division, programs. An op without which its part would compile (the last one of the shortest run of ops, from
// the part's start, that does not) is left to the CPU, with the compiler's error as its reason, and the graph is
// divided anew. Errors: the graph is malformed, the options are wrong (see Driver::compile), or options.leave_out
// forbids it.
Result<Compiled> compile(ir::Graph graph, const Target& target, const Options& options);

// The same without programs: what the driver says it takes.
Result<Compiled> plan(ir::Graph graph, const Target& target, const Options& options);

}  // namespace skillet::compile
