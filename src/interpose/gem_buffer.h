// GemBuffer: memory of a virtual device: a memfd, so that any process can map it, or pages of the process itself.
// Called by VirtualFile.
// Must not know: handles, device addresses.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "interpose/jobs.h"

namespace skillet::interpose {

class GemBuffer {
 public:
  // Errors are negative errnos.
  static int create(uint64_t size_bytes, std::shared_ptr<GemBuffer>& out);
  static int of_user_memory(uint64_t pointer, uint64_t size_bytes, std::shared_ptr<GemBuffer>& out);
  // The buffer that an exported descriptor stands for; the same object again for what this process knows.
  static int import(int fd, std::shared_ptr<GemBuffer>& out);
  ~GemBuffer();
  GemBuffer(const GemBuffer&) = delete;
  GemBuffer& operator=(const GemBuffer&) = delete;

  int fd() const { return fd_; }  // -1: memory of the process
  uint64_t size_bytes() const { return size_bytes_; }
  std::span<uint8_t> bytes() const { return {bytes_, size_bytes_}; }
  // Whether the memory is still there: that of the process may have gone.
  bool is_present() const;

  // The unfinished jobs that somebody who reads (`with_readers`: who writes) has to wait for.
  std::vector<JobRef> jobs(bool with_readers) const;
  void add_job(const JobRef& job, bool writes);

 private:
  GemBuffer() = default;
  static int adopt(int fd, uint64_t size_bytes, std::shared_ptr<GemBuffer>& out);

  int fd_ = -1;
  uint8_t* bytes_ = nullptr;
  uint64_t size_bytes_ = 0;
  mutable std::mutex jobs_mutex_;
  JobRef last_writer_;
  std::vector<JobRef> users_;
};

}  // namespace skillet::interpose
