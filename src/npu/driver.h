// Driver: the calls that a vendor must provide, and the registry that finds drivers.
// Called by passes, runtime and tools; implemented in npus/<v>/compiler/driver.cpp.
// Must not know: anything of one vendor.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bits/bits.h"
#include "capture/capture.h"
#include "graph/ir/graph.h"
#include "npu/chip.h"
#include "npu/cost.h"
#include "npu/support.h"
#include "program/program.h"

namespace skillet::npu {

// recorded: what a recorded driver emits, for comparison with its jobs. proven: only what is known to work on silicon.
// tuned: also our own choices. Each adds named switches to the one before.
enum class Tuning : uint8_t { recorded, proven, tuned };
constexpr std::array<std::string_view, 3> kTuningNames = {"recorded", "proven", "tuned"};
constexpr std::string_view tuning_name(Tuning tuning) { return kTuningNames[static_cast<size_t>(tuning)]; }
std::optional<Tuning> tuning_from_name(std::string_view name);

// How weights with a scale per channel are converted for a chip that has fewer scales. exact: each layer stays within
// one step of its per-channel result, for any input; passes may rewrite ops with the same bound. approximate: also
// conversions that an estimate accepts. strict: weights as with exact, but passes only make rewrites that give the same
// bits.
enum class PerChannel : uint8_t { exact, approximate, strict };
constexpr std::array<std::string_view, 3> kPerChannelNames = {"exact", "approximate", "strict"};
constexpr std::string_view per_channel_name(PerChannel one) { return kPerChannelNames[static_cast<size_t>(one)]; }
std::optional<PerChannel> per_channel_from_name(std::string_view name);

// For an op on bytes that the chip does not take in any form: how to replace it.
Remedy remedy_of_op(const ir::Graph& graph, ir::OpId op);

// For float ops that only carry values between the model's inputs or outputs and its 8-bit tensors: QUANTIZE,
// DEQUANTIZE, and what moves values beside them. Others: none.
Remedy remedy_at_border(const ir::Graph& graph, ir::OpId op);

// For an op with a constant operand that the chip does not support.
Remedy remedy_of_constant(const ir::Graph& graph, const ir::Op& op);

// Where ops run that stand on assumptions (Support::stands_on). refuse: on the CPU. verify: on the NPU, and a session
// compares the device with the CPU kernels before its first result (runtime/verify.h). take: on the NPU.
enum class Unproven : uint8_t { refuse, verify, take };
constexpr std::array<std::string_view, 3> kUnprovenNames = {"refuse", "verify", "take"};
constexpr std::string_view unproven_name(Unproven unproven) { return kUnprovenNames[static_cast<size_t>(unproven)]; }
std::optional<Unproven> unproven_from_name(std::string_view name);

// An option of a driver's compiler that can be turned on by name.
struct TuningSwitch {
  std::string_view name;
  std::optional<Tuning> since;   // the first tuning that has it on; none: no tuning, because it is not known to work
  bool changes_results = false;  // without it a job may compute other results
  std::string_view reason;       // what it does, and what happens without it
};

// One of several ways to compute an operation, all with the same results.
struct Choice {
  ir::OpId op = -1;   // of the compiled graph
  std::string name;   // a tuning switch that is on
  int32_t value = 0;  // its meaning depends on the switch; 0: the default

  bool operator==(const Choice&) const = default;
};

struct CompileOptions {
  Tuning tuning = Tuning::proven;
  // Tuning switches to turn on one by one on top of `tuning`, by the driver's own names.
  std::vector<std::string> switches;
  // Tuning switches that stay off in any case: this device was seen to compute otherwise than they assume.
  std::vector<std::string> without;
  // From Driver::choices(), at most one for each op and name; compile/tune.h finds the best.
  std::vector<Choice> choices;
  // Every intermediate tensor in Program::intermediates keeps its own bytes until the end of a run.
  bool keep_intermediates = false;
  // Read by compile/; drivers compile every op that they get.
  Unproven unproven = Unproven::verify;
  // Read by passes; drivers compile the weights that they get.
  PerChannel per_channel = PerChannel::exact;

  bool takes_unproven() const { return unproven != Unproven::refuse; }
  bool may_have(std::string_view name) const { return std::ranges::find(without, name) == without.end(); }
};

// Meaning of a decoded value, so that two submissions compare equal independent of the allocator.
enum class FieldKind : uint8_t {
  value,     // the number itself
  commands,  // address of commands; `extent_bytes` of them are decoded as separate fields
  constant,  // address of coefficients or of a table: the bytes there are compared
  memory,    // address of tensor data: the tensor is compared
};
// Place of the words that a field is read from: inline in the call, or in the device's memory.
struct FieldPlace {
  bool in_call = false;    // in the first list of the first job
  uint64_t address = 0;    // of the first word; if in_call: bytes from its start
  uint32_t first_bit = 0;  // bit offset in the first word
};
// Bytes around an address that the operation may read or write: [address - before, address + after).
struct Reach {
  uint64_t before = 0, after = 0;
  bool operator==(const Reach&) const = default;
};
// Facts about a field, without text.
struct FieldFacts {
  bool unknown = false;  // bits that no row describes
  FieldKind kind = FieldKind::value;
  uint64_t address = 0;        // kinds other than value; 0: none
  uint64_t extent_bytes = 0;   // from the address on, for comparison with another submission; 0: not known
  std::optional<Reach> reach;  // of an address; none: not known
  bool unused = false;         // an address that the operation does not use
  bool output = false;         // an address that the operation writes from
  // The row and descriptor that it was decoded by, and its place: these allow changing the value.
  const bits::Descriptor* descriptor = nullptr;
  const bits::Row* row = nullptr;  // null: a whole word
  std::optional<FieldPlace> place;
};
// One decoded line of a submission, for `skillet decode` and `skillet diff`. The fields of a submission cover every bit
// of its commands.
struct AnnotatedField : FieldFacts {
  std::string path;      // "job 3 nn_instruction.kernel_x_size"
  std::string value;     // printed value, with unit
  std::string raw;       // hex
  std::string name;      // the path without numbers of words and jobs: equal in any submission
  size_t operation = 0;  // index into Annotated::operations; their count: the field follows the last one
};
// full: every field with its text. addresses: no text; only the fields that are addresses or have no meaning; all other
// bits are in Annotated::values. For fast checks of a program. places: the same without reach and refusals, for a
// second pass over a program.
enum class Detail : uint8_t { full, addresses, places };
// Format of the image that an operation writes, in bytes from its address: planes of rows of pixels; each pixel has
// pixel_bytes bytes of channels. channels 0: not known.
struct WrittenImage {
  uint32_t height = 0, width = 0, channels = 0, pixel_bytes = 1;
  uint64_t row_bytes = 0, plane_bytes = 0;
  bool is_signed = false;
};
struct Annotated {
  std::string text;                     // text form of the whole submission
  std::vector<AnnotatedField> fields;   // in the order of the commands
  std::vector<std::string> operations;  // kind of each operation: "NN", "TP"
  std::vector<std::string> shapes;      // of each, as text: "16x16x8 -> 16x16x32, 3x3"; empty: not known
  std::vector<WrittenImage> images;     // of the first operations, or of all
  std::vector<uint64_t> values;         // not for Detail::full; submissions that differ in any other bit differ here
  // The first value that compile() never writes, or that contradicts another field: operation, field, value. A capture
  // may contain it, a program from a file may not. Empty: none.
  std::string refused;
};

// All documentation that a driver has about a chip's commands.
struct PlainRegister {
  uint32_t address = 0;
  const char *name = nullptr, *doc = nullptr;
};
struct HardwareRows {
  std::vector<const bits::Descriptor*> descriptors;  // in memory, and single registers of a set
  std::vector<PlainRegister> registers;              // registers whose bits have no rows, or have them in descriptors
};

// Size of a device operation's weights and biases, in bytes; 0: the chip's format has no such number.
struct Compression {
  ir::OpId op = -1;
  std::string kind;
  uint64_t raw = 0;       // without compression
  uint64_t recorded = 0;  // compressed as by a known driver
  uint64_t tuned = 0;     // compressed as far as the format allows
  uint64_t format = 0;    // the same without padding and headers
  uint64_t entropy = 0;   // lower bound for any code of single bytes
};

// Approximate size of the constants that compile() makes for an op, in bytes of a program. Ops with equal keys (not
// empty) share their constants.
struct MadeConstants {
  uint64_t bytes = 0;
  std::string key;
};

// The accelerator that a vendor's compiler compiled a network for.
struct MadeFor {
  std::string accelerator;  // name in the vendor's compiler; empty: not compiled by a vendor's compiler
  std::vector<Chip> chips;  // known chips with that accelerator; may be empty
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const Chip> chips() const = 0;
  virtual Result<Chip> identify(const capture::DeviceInfo& info) const = 0;  // error without a message: unknown device
  virtual Support supports(const Chip& chip, const ir::Graph& graph, ir::OpId op) const = 0;
  // All assumptions about the chip that Support::stands_on can refer to.
  virtual std::span<const Assumption> assumptions(const Chip&) const { return {}; }
  // Maximum difference between the result of an op that supports() takes and the CPU's, in steps of the output, for the
  // same input. Ops that only move or select bytes never differ. For other ops: the usual bound.
  virtual int tolerance(const Chip&, const ir::Graph&, ir::OpId) const { return 1; }
  // Maximum number of different scales for the weights of `op`; each scale costs one more job.
  virtual size_t weight_scales_max(const Chip&, const ir::Graph&, ir::OpId) const { return SIZE_MAX; }
  // Upper bounds for compile/: a small model file must not demand all of the machine's memory. Default: the op's
  // constants as they are.
  virtual MadeConstants made_constants(const Chip&, const ir::Graph&, ir::OpId) const;
  // `graph` may contain only ops that supports() took; compile() checks again and names an op that it refuses. Error
  // invalid_argument: the options are wrong for any graph.
  virtual Result<Program> compile(const Chip& chip, const ir::Graph& graph, const CompileOptions& options) const = 0;
  // Predicts the cost of a run of layers over several cores; none: runs are not divided for this chip. With a model,
  // operations may have their own rows of padding (ir::RowPads).
  virtual std::optional<CostModel> costs(const Chip&, const Measured&) const { return std::nullopt; }
  // Choices that the options leave open: other ways to compute the operations of the graph, by name, in the order in
  // which they should be tried. Each compiles, alone and with any choice of other operations.
  virtual Result<std::vector<Choice>> choices(const Chip&, const ir::Graph&, const CompileOptions&) const {
    return std::vector<Choice>{};
  }
  // All switches that distinguish this driver's tunings.
  virtual std::span<const TuningSwitch> switches() const { return {}; }
  // Statistics of the weights of each operation that compile() makes.
  virtual Result<std::vector<Compression>> compression(const Chip&, const ir::Graph&, const CompileOptions&) const {
    return std::vector<Compression>{};
  }
  Result<Annotated> decode(const Chip& chip, const capture::Submission& submission) const {
    return decode_as(chip, submission, Detail::full);
  }
  virtual Result<Annotated> decode_as(const Chip& chip, const capture::Submission& submission, Detail detail) const = 0;
  // The order in which compile() stores weights, if a job does not show it; as sim::Weights::order. Empty: jobs show
  // it.
  virtual std::string_view weights_order() const { return ""; }
  virtual HardwareRows hardware_rows(const Chip&) const { return {}; }
  virtual MadeFor made_for(const ir::Graph&) const { return {}; }
};

// All linked drivers: cmake/vendors.cmake generates the list from SKILLET_VENDORS.
std::span<const Driver* const> drivers();
Result<Chip> find_chip(std::string_view name);
Result<const Driver*> driver_of(const Chip& chip);
// From the driver whose vendor's compiler made the network.
MadeFor made_for(const ir::Graph& graph);
// ": it was compiled for ACCELERATOR", with the devices that have it; else empty.
std::string text_of(const MadeFor& made);

}  // namespace skillet::npu
