// Kernel: an emulated mainline kernel driver of NPUs, with a simulated chip; File: one open file of its nodes. The
// common part is here; kernels/<kernel>/fake/ has the calls, with the checks and errnos of the real driver.
// Called by the system calls in this process (in_process.h) and by the virtual device node (lab/interpose/).
// Must not know: any single kernel driver, descriptors of the process, paths.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "kernels/fake/buffer.h"
#include "kernels/fake/fault_plan.h"
#include "kernels/fake/job_clock.h"
#include "kernels/fake/jobs.h"

namespace skillet::fake {

// Effect of a job that the simulator stops.
enum class OnFault : uint8_t {
  reset,  // as in hardware after a hang: it counts as finished, its outputs are not written
  error,  // its submission fails with EIO
};

// Effect of a misuse by user space that a stock kernel does not survive.
enum class OnMisuse : uint8_t {
  abort,   // ends the process with a line that names it: for programs under test
  report,  // prints only the line; the call continues as in a kernel without that bug
};

struct Options {
  FaultPlan faults;
  OnFault on_fault = OnFault::reset;
  bool loses_jobs = false;  // the chip itself loses jobs, without a fault
  bool traces = false;      // prints a line for each call
  // The kernel serves only the process that it is in: pointers are trusted, buffers are memory of the process until
  // they are shared, and a job that accesses bytes beyond the requested size is a fault, although hardware maps whole
  // pages.
  bool is_own_process = false;
  // A job that writes a buffer not listed as written is a fault. In a real kernel it is allowed, but waits ignore the
  // write. Not for recorded jobs: some write beyond a buffer into the next one.
  bool checks_lists = false;
  // Seed for the order of jobs that no fence orders, if there are several cores; 0: the order of submissions.
  uint32_t schedule = 0;
  OnMisuse on_misuse = OnMisuse::abort;
  // Time from a job's fence until a worker has released the job's buffers, for kernels that do this later. Boards are
  // usually faster, but clients must not rely on it.
  std::chrono::milliseconds release_time{40};
  std::shared_ptr<JobClock> clock;  // of the board; null: the host's clock
  // rocket: an out-of-tree kernel with interface 1.N; none: mainline, 0.0.
  std::optional<int> extensions = std::nullopt;
};

// Names of a device in /dev and /sys.
struct NodePlace {
  std::string subsystem;  // "drm", "accel": the folder in /sys/class
  std::string folder;     // "/dev/dri"
  unsigned major = 0;
  std::string driver;        // of the platform bus
  std::string device_name;   // "ff100000.npu"
  std::string of_full_name;  // "/soc/npu@ff100000"; empty: the device is not in the device tree
  std::string compatible;    // "vivante,gc"
  struct Device {
    std::string name, of_full_name, compatible;
  };
  std::vector<Device> cores;  // further devices of the driver besides that of the nodes
  struct Node {
    std::string name;  // "renderD128"
    unsigned minor = 0;
  };
  std::vector<Node> nodes;
};

// Results are those of the kernel: 0 or a negative errno.
class File {
 public:
  explicit File(unsigned minor) : minor_(minor) {}
  virtual ~File() = default;
  unsigned minor() const { return minor_; }
  // `argument` is memory of the process, and untrusted.
  virtual int ioctl(unsigned long request, void* argument) = 0;
  // The memory at an offset that an ioctl returned for mmap().
  virtual int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) = 0;
  // For MAP_PRIVATE; touching such memory of etnaviv crashes a stock kernel.
  virtual bool takes_private_mappings() const { return true; }
  // The last descriptor is being closed, also at the end of a process: checks what a stock kernel would do now.
  virtual void check_close() {}
  // The driver's lines in /proc/PID/fdinfo.
  virtual std::string fdinfo() { return {}; }

 private:
  unsigned minor_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual NodePlace place() const = 0;

  int open(unsigned minor, std::shared_ptr<File>& out);
  const Options& options() const { return options_; }
  // Why the last call failed: a fault of the simulator, or a broken rule of the kernel.
  std::string reason() const;
  // As in a reset of the core: hung jobs count as finished.
  void reset();
  // The kernel's clock: the host's plus the time that let_pass() added.
  std::chrono::steady_clock::time_point now() const;
  void let_pass(std::chrono::nanoseconds time) { passed_ns_ += time.count(); }
  // Call around fork(): a child gets consistent state, and no lock that a thread of its parent held.
  void lock_all();
  void unlock_all();

 protected:
  explicit Kernel(Options options) : options_(std::move(options)) {}
  virtual std::shared_ptr<File> make_file(unsigned minor) = 0;

 public:  // for the files of an emulated kernel driver
  // Held from the check of a submission to its end: jobs run one by one, in the order of their ids. Lock it before
  // state().
  std::mutex& order() { return order_; }
  // Guards files' tables, buffers and jobs().
  std::mutex& state() { return state_; }
  Jobs& jobs() { return jobs_; }
  // Jobs::wait() for kernels where only a reset ends a job that stalls. If no other process can reset it, only this
  // kernel's clock waits.
  int wait_for_job(std::unique_lock<std::mutex>& lock, JobId job, Jobs::Time deadline, bool is_nonblocking);
  uint64_t next_client() { return ++clients_; }  // the number of a file

  int create_buffer(uint64_t size_bytes, std::shared_ptr<Buffer>& out) const;
  // The offset of a buffer for mmap(), assigned by the first call; the buffer at an offset, or null. Requires state().
  uint64_t offset_of(const std::shared_ptr<Buffer>& buffer);
  std::shared_ptr<Buffer> buffer_at(uint64_t offset) const;
  // Returns the same object for memory that is already known. Requires state().
  int import_buffer(int fd, std::shared_ptr<Buffer>& out);
  // A descriptor for the process, with the flags of prime_handle_to_fd; or a negative errno. Requires state().
  int export_buffer(const std::shared_ptr<Buffer>& buffer, uint32_t flags);
  // The buffer of this kernel for a descriptor, or a negative errno. Requires state().
  int exported_buffer(int fd, std::shared_ptr<Buffer>& out);
  int copy_from_user(void* to, uint64_t from, size_t size_bytes) const;
  int copy_to_user(uint64_t to, const void* from, size_t size_bytes) const;
  template <typename T>
  int copy_array_from_user(std::vector<T>& to, uint64_t from, size_t count) const {
    to.resize(count);
    return copy_from_user(to.data(), from, count * sizeof(T));
  }

  // The fault of one call, if any.
  Fault next_fault(std::string_view call);
  // Returns the errno of an injected fault.
  int inject(const Fault& fault, std::string_view call);
  // Handles a misuse by Options::on_misuse: `what` names it and its effect on a stock kernel.
  void punish(const std::string& what) const;
  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) const {
    if (options_.traces) write_trace(fmt::format(format, std::forward<Args>(args)...));
  }
  // Stores and traces the reason why a call fails; returns the kernel's return value.
  template <typename... Args>
  int refuse(int number, fmt::format_string<Args...> format, Args&&... args) {
    if (options_.is_own_process || options_.traces || log::enabled(log::Level::debug))
      keep_reason(number, fmt::format(format, std::forward<Args>(args)...));
    return -number;
  }

 private:
  void write_trace(const std::string& text) const;
  void keep_reason(int number, std::string text);

  Options options_;
  std::atomic<int64_t> passed_ns_{0};
  std::atomic<uint64_t> clients_{0};
  std::mutex order_, state_;
  Jobs jobs_;
  std::map<Buffer::Identity, std::weak_ptr<Buffer>> shared_;
  std::map<uint64_t, std::weak_ptr<Buffer>> mappable_;  // by offset
  mutable std::mutex reason_mutex_;
  std::string reason_;
};

}  // namespace skillet::fake
