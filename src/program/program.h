// Program: result of a driver's compile(). Buffers, jobs and relocations; position independent; touches no device.
// Called by drivers (write), runtime (load, run), tools (print, compare), the program cache (serialise).
// Must not know: a vendor's descriptors; how a device allocates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "program/layout.h"

namespace skillet::npu {

using BufferId = uint32_t;  // index into Program::buffers

enum class BufferRole : uint8_t {
  constant,  // descriptors, weights, tables: written once at load
  commands,  // read by jobs as commands; constant too, and only jobs' command ranges name it
  input,     // a graph input, in the layout and type the job reads
  output,    // a graph output
  scratch,   // intermediate results
};

// Stores the device address of (target, target_offset_bytes) in a buffer at load time. The bytes from at_byte on are
// read as a little-endian number of as few bytes as hold the bits (at most 8):
//   number[lsb + width_bits - 1 : lsb] = (address + target_offset_bytes) >> shift
// The whole address must fit, except for low bits that are 0.
struct Relocation {
  uint64_t at_byte = 0;
  BufferId target = 0;
  uint64_t target_offset_bytes = 0;
  uint8_t lsb = 0;
  uint8_t width_bits = 32;
  uint8_t shift = 0;

  uint64_t bytes() const { return (uint64_t{lsb} + width_bits + 7) / 8; }
  bool operator==(const Relocation&) const = default;
};

struct Buffer {
  std::string name;  // "weights:op3", "descriptor:op3", "tensor:12": for messages and tools
  BufferRole role = BufferRole::scratch;
  uint64_t size_bytes = 0;
  SharedBytes contents;  // constants and commands: at most size_bytes; the rest is zero
  std::vector<Relocation> relocations;

  bool is_constant() const { return role == BufferRole::constant || role == BufferRole::commands; }
  bool operator==(const Buffer&) const = default;
};

struct BufferUse {
  BufferId buffer = 0;
  bool read = false;
  bool write = false;
  uint8_t slot = 0;  // buffer slot, for kernel drivers with numbered slots

  bool operator==(const BufferUse&) const = default;
};

struct ByteRange {
  BufferId buffer = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;  // 0: no bytes

  bool operator==(const ByteRange&) const = default;
};

constexpr uint64_t kWitnessBytes = 16;

// One job of the kernel driver.
struct Job {
  std::string name;
  std::vector<ByteRange> commands;  // in buffers of commands; their number depends on the kernel driver
  std::vector<BufferUse> uses;      // all other buffers the job touches, each once
  // The end of the bytes that the job writes last: kWitnessBytes, or fewer if it writes fewer. No other job writes
  // there, and no input is there, so these bytes show until the end of the program whether the job has run. Every job
  // that writes has a witness.
  ByteRange witness;
  uint64_t sram_bytes = 0;      // on-chip memory
  uint8_t core = 0;             // index of the core that it runs on
  std::vector<uint32_t> after;  // earlier jobs that must have finished, besides earlier ones on its core

  bool operator==(const Job&) const = default;
};

// The place of a graph tensor. `layout` gives the places of its elements within layout.size_bytes from offset_bytes on.
struct TensorBinding {
  ir::TensorId tensor = ir::kNoTensor;  // of the compiled graph
  BufferId buffer = 0;
  uint64_t offset_bytes = 0;
  ImageShape shape;  // of the graph tensor
  TensorLayout layout;

  uint64_t end() const { return offset_bytes + layout.size_bytes; }
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
  uint32_t tasks = 0;  // number of times that a unit is started; operations run one after the other, as listed

  bool operator==(const OperationInfo&) const = default;
};

struct Program {
  std::string chip;  // chip name it was compiled for
  std::vector<Buffer> buffers;
  std::vector<Job> init_jobs;  // set up the chip and touch no buffer; run before the first job, and after resets
  std::vector<Job> jobs;       // every inference, in order
  std::vector<TensorBinding> inputs;
  std::vector<TensorBinding> outputs;
  std::vector<TensorBinding> intermediates;  // tensors that can be read after a run (see TensorBinding::layout)
  std::vector<OperationInfo> operations;
  std::vector<DebugEntry> debug_map;
  // Constants without relocations may share one buffer of the device, each at a multiple of this number of bytes; 0:
  // each is in its own buffer, as here.
  uint32_t constant_align = 0;

  bool operator==(const Program&) const = default;
};

// Checks every index, size, offset, relocation and binding; the error names the place. Must be called before loading a
// program: deserialise() calls it, and the runtime does for programs from drivers.
Result<void> verify(const Program& program);

// The bytes of a range of commands, before relocation.
std::span<const uint8_t> bytes_of(const Program& program, const ByteRange& range);

// Text form, for logs and golden tests: buffers with a hash of their contents, jobs with their commands.
std::string print(const Program& program);

// Program file: versioned, with a checksum. `packed`: compressed, for transfer; otherwise constants are used in place.
// deserialise() also verifies; errors name the field. The program's contents refer to `file`.
Result<Bytes> serialise(const Program& program, bool packed);
// `is_whole`: `file` is part of bytes whose checksum was right, so that its own need not be computed.
Result<Program> deserialise(const SharedBytes& file, bool is_whole = false);

}  // namespace skillet::npu
