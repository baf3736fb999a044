// Capture: what a process sent to an NPU device: a description of the device, and each submission with its buffers.
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

// A value that a kernel driver reports about a device, under the name in the driver's table.
struct Fact {
  std::string name;
  uint64_t value = 0;

  bool operator==(const Fact&) const = default;
};

// What a kernel driver reports about a device; identifies the chip.
struct DeviceInfo {
  std::string kernel_driver;  // "etnaviv", "rocket", "ethosu"
  std::string node;           // "/dev/dri/renderD128", "sim:a311d"
  std::string compatible;     // its first name in the device tree; empty: unknown
  std::vector<Fact> facts;

  // 0 for facts that are not reported.
  uint64_t fact(std::string_view name) const;
  bool operator==(const DeviceInfo&) const = default;
};
// "model 0x8000, revision 0x7120", or the compatible name if there are no facts.
std::string print(const DeviceInfo& info);

enum class Content : uint8_t { zero, bytes, unknown };  // unknown: only a hash or "the graph input" was stored

struct BufferSnapshot {
  uint32_t handle = 0;
  uint64_t address = 0;  // device address; for the meaning of 0 see is_placed()
  uint64_t size_bytes = 0;
  bool read = false, write = false, listed = false;  // its flags in the submission
  Content content = Content::unknown;
  SharedBytes bytes;         // content == bytes: without trailing zeros
  bool holds_input = false;  // starts with the bytes of a graph input

  bool operator==(const BufferSnapshot&) const = default;
};

// A command list as passed to the device: inline words, or its place in device memory.
struct Commands {
  std::vector<uint32_t> words;
  uint64_t address = 0, size_bytes = 0;

  bool operator==(const Commands&) const = default;
};

// One job of the kernel driver: etnaviv one list of words, rocket a list in memory for each task, ethosu one list of
// words.
struct Job {
  std::vector<Commands> commands;  // in order

  bool operator==(const Job&) const = default;
};
std::vector<Job> one_list(std::vector<uint32_t> words);

// Further parameters of a submission, under the kernel driver's own names.
struct Parameter {
  std::string name;
  uint64_t value = 0;

  bool operator==(const Parameter&) const = default;
};

struct Submission {
  std::vector<Parameter> parameters;    // only those that differ from a plain submission to that kernel driver
  std::vector<Job> jobs;                // in the order of the call
  std::vector<BufferSnapshot> buffers;  // all existing buffers, with their contents before the submission

  bool operator==(const Submission&) const = default;
};

// True if the device accesses the buffer by its address. If commands are in memory, the kernel driver gives all buffers
// addresses, the first one 0. Otherwise 0 is not an address.
bool is_placed(const Submission& submission, const BufferSnapshot& buffer);

// The first buffer with that handle; null: none.
const BufferSnapshot* find_buffer(const Submission& submission, uint32_t handle);

// For devices that take one list of words with each submission. Error if the submission has another form.
Result<std::span<const uint32_t>> words_of(const Submission& submission);

struct Capture {
  DeviceInfo device;
  std::vector<Submission> submissions;

  bool operator==(const Capture&) const = default;
};

// Reads a whole capture file or golden folder; a Reader (reader.h) needs memory for one submission only. A truncated
// file ends with its last complete submission, with a warning.
Result<Capture> read(const std::string& path);
Result<void> write(const Capture& capture, const std::string& path);

// The same for the bytes of such a capture file.
Result<Capture> parse(std::span<const uint8_t> file);
Result<Bytes> serialise(const Capture& capture);

// Sets content and bytes of `snapshot` from the whole contents of a buffer: zero, or bytes without trailing zeros.
void set_contents(BufferSnapshot& snapshot, std::span<const uint8_t> contents);

}  // namespace skillet::capture
