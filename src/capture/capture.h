// Capture: what a process sent to an NPU device: who the device was, and each submission with its buffers.
// Written by the recorder, the interposers and the simulators; read by decode, diff, replay, golden.
// Must not know: what the bytes mean. format.md describes the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::capture {

// A value that a kernel reports about a device, by the name that its driver's row gives it.
struct Fact {
  std::string name;
  uint64_t value = 0;

  bool operator==(const Fact&) const = default;
};

// What a kernel reports about a device: by this a driver identifies the chip.
struct DeviceInfo {
  std::string kernel_driver;  // "etnaviv", "rocket", "ethosu"
  std::string node;           // "/dev/dri/renderD128", "sim:a311d"
  std::string compatible;     // its first name in the device tree; empty if unknown
  std::vector<Fact> facts;

  // 0 for what the kernel does not report.
  uint64_t fact(std::string_view name) const;
  bool operator==(const DeviceInfo&) const = default;
};
// "model 0x8000, revision 0x7120", or the compatible name when there are no facts.
std::string print(const DeviceInfo& info);

enum class Content : uint8_t { zero, bytes, unknown };  // unknown: only a hash or "the graph input" was kept

struct BufferSnapshot {
  uint32_t handle = 0;
  uint64_t address = 0;  // device address; what 0 is: is_placed()
  uint64_t size_bytes = 0;
  bool read = false, write = false, listed = false;  // how the submission lists it
  Content content = Content::unknown;
  SharedBytes bytes;         // content == bytes: trailing zeros cut
  bool holds_input = false;  // starts with the bytes of a graph input

  bool operator==(const BufferSnapshot&) const = default;
};

// A list of commands as the device gets it: words that were handed over in the call, or where it is in its memory.
struct Commands {
  std::vector<uint32_t> words;
  uint64_t address = 0, size_bytes = 0;

  bool operator==(const Commands&) const = default;
};

// One job of the kernel: etnaviv one list of words, rocket a list in memory for each task, ethosu one list of words.
struct Job {
  std::vector<Commands> commands;  // one after the other

  bool operator==(const Job&) const = default;
};
std::vector<Job> one_list(std::vector<uint32_t> words);

// What a submission says beside its commands and buffers, by the kernel's own name.
struct Parameter {
  std::string name;
  uint64_t value = 0;

  bool operator==(const Parameter&) const = default;
};

struct Submission {
  std::vector<Parameter> parameters;    // only those that are not as in every plain submission of that kernel
  std::vector<Job> jobs;                // in the order of the call
  std::vector<BufferSnapshot> buffers;  // all buffers that exist, as they were before the submission

  bool operator==(const Submission&) const = default;
};

// Whether the device reads it by its address. Where commands are in memory, the kernel gives all buffers addresses, the
// first one 0. Elsewhere 0 is no address.
bool is_placed(const Submission& submission, const BufferSnapshot& buffer);

// The first with that handle; null: there is none.
const BufferSnapshot* find_buffer(const Submission& submission, uint32_t handle);

// For devices that take one list of words with each submission. Error when it is another.
Result<std::span<const uint32_t>> words_of(const Submission& submission);

struct Capture {
  DeviceInfo device;
  std::vector<Submission> submissions;

  bool operator==(const Capture&) const = default;
};

// The whole of a capture file or golden folder; a Reader (reader.h) needs memory for one submission only. A file that
// was cut off ends with its last whole submission, and a warning.
Result<Capture> read(const std::string& path);
Result<void> write(const Capture& capture, const std::string& path);

// The same for the bytes of such a capture file.
Result<Capture> parse(std::span<const uint8_t> file);
Result<Bytes> serialise(const Capture& capture);

// Fills content and bytes of `snapshot` from the whole contents of a buffer: zero, or bytes with trailing zeros cut.
void set_contents(BufferSnapshot& snapshot, std::span<const uint8_t> contents);

}  // namespace skillet::capture
