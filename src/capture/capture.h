// Capture: what a process sent to an NPU device: who the device was, and each submission with its buffers.
// Written by the recorder, the interposers and the simulators; read by decode, diff, replay, golden.
// Must not know: what the bytes mean. format.md describes the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::capture {

// What a kernel tells about a device; ids are those of the kernel's own parameter queries.
struct DeviceInfo {
  std::string kernel_driver;  // "etnaviv", "rocket", "ethosu"
  std::string node;           // "/dev/dri/renderD128", "sim:a311d"
  uint32_t model = 0, revision = 0, product_id = 0, customer_id = 0, eco_id = 0;  // etnaviv
};

enum class Content : uint8_t { zero, bytes, unknown };  // unknown: only a hash or "the graph input" was kept

struct BufferSnapshot {
  uint32_t handle = 0;
  uint64_t address = 0;     // device address; 0: not mapped
  uint64_t size_bytes = 0;
  bool read = false, write = false, listed = false;  // how the submission lists it
  Content content = Content::unknown;
  Bytes bytes;              // content == bytes: trailing zeros cut
  bool holds_input = false;  // starts with the bytes of a graph input
};

struct Submission {
  std::string chip;                     // chip name where known
  std::vector<uint32_t> stream;         // command words
  std::vector<BufferSnapshot> buffers;  // all buffers that exist, as they were before the submission
};

struct Capture {
  DeviceInfo device;
  std::vector<Submission> submissions;
};

// Reads a capture file of ours, or a folder that holds capture.json (golden layout). Errors name file and field.
Result<Capture> read(const std::string& path);
Result<void> write(const Capture& capture, const std::string& path);

}  // namespace skillet::capture
