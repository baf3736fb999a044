// Program: what a driver's compile() returns. Buffers, jobs and relocations; position independent, touches no device.
// Called by drivers (write), runtime (load, run), tools (print, compare), the program cache (serialise).
// Must not know: a vendor's descriptors; how a device allocates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "ir/graph.h"

namespace skillet::driver {

using BufferId = uint32_t;  // index into Program::buffers

enum class BufferRole : uint8_t {
  constant,  // descriptors, weights, tables: written once at load
  input,     // a graph input, in the layout and type the job reads
  output,    // a graph output
  scratch,   // intermediate results
};

struct Buffer {
  std::string name;  // "weights:op3", "descriptor:op3", "tensor:12": for people and tools
  BufferRole role = BufferRole::scratch;
  uint64_t size_bytes = 0;
  Bytes contents;  // constants: at most size_bytes; the rest is zero

  bool operator==(const Buffer&) const = default;
};

// Adds the device address of (target, target_offset_bytes) to a 32-bit word at load time:
//   word[lsb + width - 1 : lsb] = (address + target_offset_bytes) >> shift
struct Relocation {
  uint32_t word_offset_bytes = 0;  // where the word stands, in its buffer or stream
  BufferId target = 0;
  uint64_t target_offset_bytes = 0;
  uint8_t lsb = 0;
  uint8_t width = 32;
  uint8_t shift = 0;

  bool operator==(const Relocation&) const = default;
};

struct BufferUse {
  BufferId buffer = 0;
  bool read = false;
  bool write = false;

  bool operator==(const BufferUse&) const = default;
};

struct ByteRange {
  BufferId buffer = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;  // 0: no bytes

  bool operator==(const ByteRange&) const = default;
};

constexpr uint64_t kWitnessBytes = 16;

// One kernel submission.
struct Job {
  std::string name;
  std::vector<uint32_t> stream;         // command words
  std::vector<Relocation> relocations;  // of the stream
  std::vector<BufferUse> buffers;       // all buffers the job touches, each once
  // The end of what the job writes last: kWitnessBytes, or less where that is all. No other job writes there, and no
  // input lies there, so that these bytes tell until the end of the program whether the job has run. Every job that
  // writes has one.
  ByteRange witness;

  bool operator==(const Job&) const = default;
};

struct BufferRelocations {
  BufferId buffer = 0;
  std::vector<Relocation> relocations;

  bool operator==(const BufferRelocations&) const = default;
};

// Order of a tensor's elements in a buffer. nchw_planar: all of channel 0, then all of channel 1, ... without gaps.
enum class Layout : uint8_t { nhwc, nchw_planar };

// How a graph tensor appears in a buffer. size_bytes is the graph tensor's size: there are no gaps.
struct TensorBinding {
  ir::TensorId tensor = ir::kNoTensor;  // of the compiled graph
  BufferId buffer = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  uint8_t xor_byte = 0;  // each byte is XORed with this on the way in and out (0x80: int8 <-> uint8)
  Layout layout = Layout::nhwc;

  bool operator==(const TensorBinding&) const = default;
};

// Which words of a buffer belong to which op, for tools.
struct DebugEntry {
  BufferId buffer = 0;
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  std::string what;        // the descriptor's or block's name: "nn_instruction", "weights"
  int32_t operation = -1;  // index into Program::operations

  bool operator==(const DebugEntry&) const = default;
};

// One device operation, for reports: which op of the graph it came from and what it does.
struct OperationInfo {
  ir::OpId op = -1;  // op of the compiled graph; -1: inserted (layout change)
  std::string kind;  // "NN conv 3x3", "TP transpose"
  uint64_t macs = 0;

  bool operator==(const OperationInfo&) const = default;
};

struct Program {
  std::string chip;  // chip name it was compiled for
  std::vector<Buffer> buffers;
  std::vector<BufferRelocations> buffer_relocations;
  std::vector<Job> init_jobs;  // set up the chip itself and touch no buffer; before the first job, and after resets
  std::vector<Job> jobs;       // every inference, in order
  std::vector<TensorBinding> inputs;
  std::vector<TensorBinding> outputs;
  std::vector<TensorBinding> intermediates;  // tensors a tool can read back after a run (see TensorBinding::layout)
  std::vector<OperationInfo> operations;
  std::vector<DebugEntry> debug_map;

  bool operator==(const Program&) const = default;
};

// Checks every index, size, offset, relocation and binding; the error names the place. Whoever loads a program has
// called this: deserialise() does, and the runtime does for programs of drivers.
Result<void> verify(const Program& program);

// Text form, for people, logs and golden tests: buffers with a hash of their contents, jobs with their words.
std::string print(const Program& program);

// Program file: versioned, checksummed, compressed. deserialise() also verifies; errors name the field.
Result<Bytes> serialise(const Program& program);
Result<Program> deserialise(std::span<const uint8_t> file);

}  // namespace skillet::driver
