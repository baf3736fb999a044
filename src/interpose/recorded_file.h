// RecordedFile: what one open file of an etnaviv node, real or virtual, is sent; each submission goes to a capture file
// before the kernel gets it, with the contents of the buffers it lists.
// Called by the hooks of the recording library.
// Must not know: descriptors' copies, who the process is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "capture/file_writer.h"
#include "uapi/etnaviv_uapi.h"

namespace skillet::interpose {

inline constexpr const char* kCaptureVariable = "SKILLET_CAPTURE_FILE";

class RecordedFile {
 public:
  // Whether `fd` is a file of the etnaviv driver.
  static bool is_one(int fd);
  explicit RecordedFile(std::string path) : path_(std::move(path)) {}
  ~RecordedFile();

  // Forwards one ioctl of the process; the result of ioctl().
  int ioctl(int fd, unsigned long request, void* argument);

 private:
  struct Buffer {
    uint64_t size_bytes = 0;
    uint8_t* bytes = nullptr;  // mapped by us, or memory of the process
    bool is_mapped = false;
  };

  int submit(int fd, unsigned long request, void* argument);
  void learn(unsigned long request, void* argument);
  void forget(uint32_t handle);
  Result<void> record(int fd, const uapi::etnaviv::GemSubmit& args);
  Result<void> open_capture(int fd, uint32_t pipe);
  Result<capture::Submission> snapshot(int fd, const uapi::etnaviv::GemSubmit& args);
  void take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer);
  std::span<const uint8_t> map(int fd, uint32_t handle, Buffer& buffer);

  std::string path_;
  std::mutex mutex_;  // of all below
  std::map<uint32_t, Buffer> buffers_;
  std::string chip_;
  std::optional<capture::FileWriter> writer_;
  bool has_failed_ = false;
};

}  // namespace skillet::interpose
