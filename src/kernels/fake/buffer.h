// Buffer: memory of an emulated kernel driver's device: a memfd, so that any process can map it; or memory of this
// process only, until its descriptor is needed; or pages that a process provided. Called by these drivers, which guard
// it with their own mutex. Must not know: handles, device addresses.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/fake/jobs.h"

namespace skillet::fake {

enum class Backing : uint8_t { shared, own };

class Buffer {
 public:
  using Identity = std::pair<dev_t, ino_t>;

  static constexpr uint64_t kPageBytes = 4096;
  static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;  // it cannot be truncated while mapped

  // Errors are negative errnos. Sizes are rounded up to whole pages.
  static int create(uint64_t size_bytes, Backing backing, std::shared_ptr<Buffer>& out);
  // The memory is checked only when it is used.
  static int of_user_memory(uint64_t pointer, uint64_t size_bytes, std::shared_ptr<Buffer>& out);
  // A buffer without memory: of 0 bytes, or larger than possible.
  static std::shared_ptr<Buffer> without_memory(uint64_t size_bytes);
  // The memory of an exported descriptor, which remains the caller's.
  static int import(int fd, std::shared_ptr<Buffer>& out);
  // Identity of the memory; none: the descriptor is not a buffer.
  static std::optional<Identity> identify(int fd);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // The memfd; created now, with the buffer's bytes, if there was none. A negative errno for memory that the process
  // provided.
  int descriptor();
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t asked_bytes() const { return asked_bytes_; }
  std::span<uint8_t> bytes() const { return {bytes_, size_bytes_}; }
  // False if memory of the process has been unmapped.
  bool is_present() const;
  // True if it is another driver's memory.
  bool is_imported() const { return is_imported_; }
  bool has_memory() const { return bytes_ != nullptr || is_users_; }
  bool can_map() const { return bytes_ != nullptr && !is_users_; }

  // For mmap(); 0: not assigned yet.
  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset) { offset_ = offset; }
  // Whether its descriptors are writable; none: there is none yet.
  std::optional<bool> exported_writable() const { return exported_writable_; }
  void set_exported_writable(bool writable) { exported_writable_ = writable; }

  // The unfinished job that an access must wait for: for a read a writer, for a write (`with_readers`) any job.
  std::optional<JobId> busy(const Jobs& jobs, bool with_readers) const;
  // The last unfinished job that writes it.
  std::optional<JobId> last_writer(const Jobs& jobs) const;
  void add_job(const Jobs& jobs, JobId job, bool writes);
  // True if a job ever listed it.
  bool was_listed() const { return was_listed_; }

 private:
  struct Use {
    JobId job = 0;
    bool writes = false;
  };

  Buffer() = default;
  static int adopt(int fd, uint64_t size_bytes, std::shared_ptr<Buffer>& out);

  int fd_ = -1;
  uint8_t* bytes_ = nullptr;
  uint64_t size_bytes_ = 0, asked_bytes_ = 0;
  uint64_t offset_ = 0;
  std::optional<bool> exported_writable_;
  bool is_users_ = false, was_listed_ = false, is_imported_ = false;
  std::vector<Use> uses_;  // by jobs that may be unfinished
};

}  // namespace skillet::fake
