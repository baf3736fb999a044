// The frames of a capture file: its start, one frame for the device, and one for each submission. Contents that a
// buffer had before are not stored again, so writer and reader keep the last contents: the writer hashes, the reader
// bytes.
// Called by FileWriter, Reader and tests.
// Must not know: where frames are stored.
#pragma once

#include <map>
#include <string>

#include "capture/capture.h"

namespace skillet::capture {

constexpr uint64_t kFrameLimitBytes = 1ULL << 30;  // of one frame, unpacked

enum class FrameKind : uint32_t { device = 1, submission = 2 };

struct FrameHeader {
  FrameKind kind = FrameKind::submission;
  uint32_t packed = 0;        // 1: the stored bytes are one zstd frame
  uint64_t table_bytes = 0;   // unpacked
  uint64_t stored_bytes = 0;  // after the header
  uint64_t checksum = 0;      // XXH3 of the stored bytes, seeded with XXH3 (seed 0) of the fields above
};
static_assert(sizeof(FrameHeader) == 32);

constexpr std::string_view kNoCapture = "not a skillet capture file";  // the end of an error message about other files
constexpr size_t kStartBytes = 16;                                     // magic, version, 0
Bytes file_start();
// `start`: the first bytes of a file, at most kStartBytes.
Result<void> check_start(std::span<const uint8_t> start);
// False for bytes that cannot be a header.
bool is_header(const FrameHeader& header);

// One frame with its header; `packed`: compressed by zstd.
Result<Bytes> make_frame(FrameKind kind, std::span<const uint8_t> table, bool packed);

class FrameWriter {
 public:
  // Call in the order of the file. `file_bytes`: size of the file before the frame.
  Result<Bytes> device(const DeviceInfo& info, uint64_t file_bytes) const;
  Result<Bytes> submission(const Submission& submission, uint64_t file_bytes);

 private:
  struct Known {
    uint64_t low = 0, high = 0, size_bytes = 0;  // XXH3 of 128 bits
    bool operator==(const Known&) const = default;
  };
  uint64_t live_bytes() const;
  // Stored uncompressed if compression would exceed the expansion limit of the file.
  Result<Bytes> frame(FrameKind kind, std::span<const uint8_t> table, uint64_t file_bytes) const;

  std::map<uint32_t, Known> known_;  // by handle: its last contents
};

class FrameReader {
 public:
  // `stored`: the bytes after the header; `file_bytes`: size of the whole file.
  Result<DeviceInfo> device(const FrameHeader& header, std::span<const uint8_t> stored, uint64_t file_bytes) const;
  Result<Submission> submission(const FrameHeader& header, std::span<const uint8_t> stored, uint64_t file_bytes);

 private:
  std::map<uint32_t, SharedBytes> known_;
};

}  // namespace skillet::capture
