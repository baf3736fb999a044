// Driver: the five calls a vendor must provide, and the registry that finds them.
// Called by passes, runtime and tools; implemented in npus/<v>/compiler/driver.cpp.
// Must not know: a vendor's anything.
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

// recorded: what a driver whose jobs were recorded emits, for comparison with those jobs. proven: only what is known to
// work on silicon. tuned: our own choices too. Each adds named switches to the one before.
enum class Tuning : uint8_t { recorded, proven, tuned };
constexpr std::array<std::string_view, 3> kTuningNames = {"recorded", "proven", "tuned"};
constexpr std::string_view tuning_name(Tuning tuning) { return kTuningNames[static_cast<size_t>(tuning)]; }
std::optional<Tuning> tuning_from_name(std::string_view name);

// What weights with a scale per channel may become on a chip that has fewer scales. exact: what keeps each layer within
// one step of its per-channel result, whatever the input; so may ops that passes rewrite. approximate: also what an
// estimate calls good enough. strict: weights as with exact, but passes only make what gives the same bits.
enum class PerChannel : uint8_t { exact, approximate, strict };
constexpr std::array<std::string_view, 3> kPerChannelNames = {"exact", "approximate", "strict"};
constexpr std::string_view per_channel_name(PerChannel one) { return kPerChannelNames[static_cast<size_t>(one)]; }
std::optional<PerChannel> per_channel_from_name(std::string_view name);

// Of an op of bytes that a chip does not take in any form: another that it may.
Remedy remedy_of_op(const ir::Graph& graph, ir::OpId op);

// Of an op with a constant operand where the chip has none.
Remedy remedy_of_constant(const ir::Graph& graph, const ir::Op& op);

// Ops that stand on assumptions (Support::stands_on). refuse: the CPU gets them. verify: the NPU does, and a session
// compares the device with the CPU kernels before its first result (runtime/verify.h). take: the NPU does.
enum class Unproven : uint8_t { refuse, verify, take };
constexpr std::array<std::string_view, 3> kUnprovenNames = {"refuse", "verify", "take"};
constexpr std::string_view unproven_name(Unproven unproven) { return kUnprovenNames[static_cast<size_t>(unproven)]; }
std::optional<Unproven> unproven_from_name(std::string_view name);

// A choice of a driver's compiler that can be turned on by its name.
struct TuningSwitch {
  std::string_view name;
  std::optional<Tuning> since;   // the first tuning that has it on; none: no tuning has, it is not known to work
  bool changes_results = false;  // without it a job may compute something else
  std::string_view reason;       // what it does, and what happens without it
};

// One way to compute an operation, with the same results as any other.
struct Choice {
  ir::OpId op = -1;   // of the compiled graph
  std::string name;   // a tuning switch that is on
  int32_t value = 0;  // what it means is the switch's; 0: as without

  bool operator==(const Choice&) const = default;
};

struct CompileOptions {
  Tuning tuning = Tuning::proven;
  // Tuning switches to turn on one by one on top of `tuning`, by the driver's own names.
  std::vector<std::string> switches;
  // Tuning switches that stay off, whatever else says: this device was seen to compute otherwise than they assume.
  std::vector<std::string> without;
  // Of those that Driver::choices() lists, one for each op and name; compile/tune.h finds the best.
  std::vector<Choice> choices;
  // Every intermediate tensor in Program::intermediates keeps bytes of its own until the end of a run.
  bool keep_intermediates = false;
  // compile/ asks this; drivers compile what they get.
  Unproven unproven = Unproven::verify;
  // Passes ask this; drivers compile the weights that they get.
  PerChannel per_channel = PerChannel::exact;

  bool takes_unproven() const { return unproven != Unproven::refuse; }
  bool may_have(std::string_view name) const { return std::ranges::find(without, name) == without.end(); }
};

// What a decoded value means, so that two submissions compare equal whatever the allocator did.
enum class FieldKind : uint8_t {
  value,     // the number itself
  commands,  // address of commands, `extent_bytes` of which are fields of their own
  constant,  // address of coefficients or of a table: what counts is the bytes there
  memory,    // address of tensor data: what counts is which tensor it is
};
// Where the words are that a field is read from: in the words of the call, or in the device's memory.
struct FieldPlace {
  bool in_call = false;    // of the first list of the first job
  uint64_t address = 0;    // of the first word; in the call: bytes from its start
  uint32_t first_bit = 0;  // of the first word, from there
};
// Bytes around an address that the operation may read or write: [address - before, address + after).
struct Reach {
  uint64_t before = 0, after = 0;
  bool operator==(const Reach&) const = default;
};
// What a field is, without words.
struct FieldFacts {
  bool unknown = false;  // bits no row claims
  FieldKind kind = FieldKind::value;
  uint64_t address = 0;        // kinds other than value; 0: none
  uint64_t extent_bytes = 0;   // from there on, for comparison with another submission; 0: not known
  std::optional<Reach> reach;  // of an address; none: not known
  bool unused = false;         // an address that the operation does not use
  bool output = false;         // an address that the operation writes from
  // The row that it was read by, of which descriptor, and where: with these a value can be changed.
  const bits::Descriptor* descriptor = nullptr;
  const bits::Row* row = nullptr;  // null: a word as it is
  std::optional<FieldPlace> place;
};
// One decoded line of a submission, for `skillet decode` and `skillet diff`. The fields of a submission cover every bit
// of its commands.
struct AnnotatedField : FieldFacts {
  std::string path;      // "job 3 nn_instruction.kernel_x_size"
  std::string value;     // printed value, with unit
  std::string raw;       // hex
  std::string name;      // the path without numbers of words and jobs: the same in any submission
  size_t operation = 0;  // index into Annotated::operations; one beyond: what follows the last one
};
// full: every field with its words. addresses: no words, and of the fields only addresses and what has no meaning; all
// other bits are in Annotated::values. For who checks a program and is in a hurry. places: the same, and nothing of
// reach and of what is refused: the second time that one looks at a program.
enum class Detail : uint8_t { full, addresses, places };
// How the image that an operation writes is stored, in bytes from its address: planes of rows of pixels, each pixel
// with pixel_bytes of the channels. channels 0: not known.
struct WrittenImage {
  uint32_t height = 0, width = 0, channels = 0, pixel_bytes = 1;
  uint64_t row_bytes = 0, plane_bytes = 0;
  bool is_signed = false;
};
struct Annotated {
  std::string text;                     // whole submission, for people
  std::vector<AnnotatedField> fields;   // in the order of the commands
  std::vector<std::string> operations;  // what each operation is: "NN", "TP"
  std::vector<std::string> shapes;      // of each, for people: "16x16x8 -> 16x16x32, 3x3"; empty: not known
  std::vector<WrittenImage> images;     // of the first ones, or of each
  std::vector<uint64_t> values;  // but for Detail::full; two submissions that differ in any other bit differ here
  // The first thing that compile() never writes, or that contradicts another field: operation, field, value. A capture
  // may have it, a program from a file may not. Empty: nothing.
  std::string refused;
};

// All that a driver knows of a chip's commands: for people who look something up.
struct PlainRegister {
  uint32_t address = 0;
  const char *name = nullptr, *doc = nullptr;
};
struct HardwareRows {
  std::vector<const bits::Descriptor*> descriptors;  // of memory, and single registers of a set
  std::vector<PlainRegister> registers;              // whose bits have no rows, or are among the descriptors
};

// What a device operation's weights and biases cost, in bytes; 0: the chip's format has no such number.
struct Compression {
  ir::OpId op = -1;
  std::string kind;
  uint64_t raw = 0;       // without any coding
  uint64_t recorded = 0;  // coded as a known driver does
  uint64_t tuned = 0;     // coded as small as the format allows
  uint64_t format = 0;    // the same without padding and headers
  uint64_t entropy = 0;   // the least that any code of single bytes could do
};

// Bytes of constants that compile() makes of an op, about, as they are in a program. Ops of one key (not empty) have
// the same ones, which are there once.
struct MadeConstants {
  uint64_t bytes = 0;
  std::string key;
};

// What a vendor's compiler made a network for.
struct MadeFor {
  std::string accelerator;  // by the compiler's name; empty: the network is not of a vendor's compiler
  std::vector<Chip> chips;  // that have it; empty: none that is known
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const Chip> chips() const = 0;
  virtual Result<Chip> identify(const capture::DeviceInfo& info) const = 0;  // error without words: not ours
  virtual Support supports(const Chip& chip, const ir::Graph& graph, ir::OpId op) const = 0;
  // All that Support::stands_on can name of the chip.
  virtual std::span<const Assumption> assumptions(const Chip&) const { return {}; }
  // Steps of the output by which the result of an op that supports() takes may differ from the CPU's, given the same
  // input; where bytes are only moved or chosen there is no difference all the same. Of others: what is usual here.
  virtual int tolerance(const Chip&, const ir::Graph&, ir::OpId) const { return 1; }
  // How many different scales the weights of `op` may have; what they cost is one job more for each.
  virtual size_t weight_scales_max(const Chip&, const ir::Graph&, ir::OpId) const { return SIZE_MAX; }
  // What compile/ bounds: few bytes of a model must not ask for all of the machine's memory. Here: its constants as
  // they are.
  virtual MadeConstants made_constants(const Chip&, const ir::Graph&, ir::OpId) const;
  // `graph` holds only ops that supports() took; compile checks again and names the op otherwise. Error
  // invalid_argument: the options are wrong, whatever the graph.
  virtual Result<Program> compile(const Chip& chip, const ir::Graph& graph, const CompileOptions& options) const = 0;
  // What a run of layers over several cores costs, predicted; none: runs are not divided for this chip. Else operations
  // may have rows of padding of their own (ir::RowPads).
  virtual std::optional<CostModel> costs(const Chip&, const Measured&) const { return std::nullopt; }
  // What the options leave open: other ways to compute the operations of the graph, by name. Names come in the order in
  // which they should be tried. Each compiles, alone and with any of other operations.
  virtual Result<std::vector<Choice>> choices(const Chip&, const ir::Graph&, const CompileOptions&) const {
    return std::vector<Choice>{};
  }
  // All that distinguishes this driver's tunings.
  virtual std::span<const TuningSwitch> switches() const { return {}; }
  // For people: the weights of each operation that compile() makes.
  virtual Result<std::vector<Compression>> compression(const Chip&, const ir::Graph&, const CompileOptions&) const {
    return std::vector<Compression>{};
  }
  Result<Annotated> decode(const Chip& chip, const capture::Submission& submission) const {
    return decode_as(chip, submission, Detail::full);
  }
  virtual Result<Annotated> decode_as(const Chip& chip, const capture::Submission& submission, Detail detail) const = 0;
  // In which order compile() sends weights, if a job does not show it: as sim::Weights::order. Empty: jobs show it.
  virtual std::string_view weights_order() const { return ""; }
  virtual HardwareRows hardware_rows(const Chip&) const { return {}; }
  virtual MadeFor made_for(const ir::Graph&) const { return {}; }
};

// All drivers that are linked in: cmake/vendors.cmake makes the list of SKILLET_VENDORS.
std::span<const Driver* const> drivers();
Result<Chip> find_chip(std::string_view name);
Result<const Driver*> driver_of(const Chip& chip);
// Of the driver that knows it.
MadeFor made_for(const ir::Graph& graph);
// ": it was compiled for ACCELERATOR", and the devices that have it; else nothing.
std::string text_of(const MadeFor& made);

}  // namespace skillet::npu
