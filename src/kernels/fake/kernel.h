// Kernel: an emulation of a mainline kernel's driver of NPUs, with a simulated chip behind it; File: one open file of
// its nodes. What all share is here; kernels/<kernel>/fake/ has the calls, with the checks and errno of the real one.
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

// What a job does that the simulator stops.
enum class OnFault : uint8_t {
  reset,  // as hardware does after a hang: it counts as finished, its outputs are not written
  error,  // its submission fails with EIO
};

// What user space does that a stock kernel does not survive.
enum class OnMisuse : uint8_t {
  abort,   // the process ends with a line that names it: for programs that are tested
  report,  // the line only; the call goes on as in a kernel without the fault
};

struct Options {
  FaultPlan faults;
  OnFault on_fault = OnFault::reset;
  bool loses_jobs = false;  // the chip itself does, without a fault
  bool traces = false;      // a line for each call
  // The kernel serves nobody but the process that it lives in: pointers are trusted, buffers are memory of the process
  // until they are shared, and a job that leaves the bytes asked for is a fault, though hardware maps whole pages.
  bool is_own_process = false;
  // A job that writes what it does not list as written is a fault, though in the kernel only nobody waits for it.
  // Not for recorded jobs: some write on into the next buffer.
  bool checks_lists = false;
  // Seed of the order in which jobs run that no fence orders, where there are several cores; 0: that of submissions.
  uint32_t schedule = 0;
  OnMisuse on_misuse = OnMisuse::abort;
  // From a job's fence until a worker has released the job's buffers, where a kernel does that later. Boards are faster
  // as a rule; what a client does must not rest on it.
  std::chrono::milliseconds release_time{40};
  std::shared_ptr<JobClock> clock;  // of the board; null: that of the host
  // rocket: an out-of-tree kernel, whose interface is 1.N; none: mainline, 0.0.
  std::optional<int> extensions = std::nullopt;
};

// How a device shows in /dev and /sys.
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
  std::vector<Device> cores;  // devices that the driver drives beside that of the nodes
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
  // `argument` is memory of the process, not to be trusted.
  virtual int ioctl(unsigned long request, void* argument) = 0;
  // The memory behind an offset that an ioctl gave for mmap().
  virtual int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) = 0;
  // MAP_PRIVATE; touching such memory of etnaviv stops a stock kernel.
  virtual bool takes_private_mappings() const { return true; }
  // The last descriptor goes, as it does when a process ends: what a stock kernel would make of that, now.
  virtual void check_close() {}
  // What the driver adds to the lines of /proc/PID/fdinfo.
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
  // As when the core is reset: jobs that hang count as finished.
  void reset();
  // The kernel's clock: that of the host, and the time that was let pass.
  std::chrono::steady_clock::time_point now() const;
  void let_pass(std::chrono::nanoseconds time) { passed_ns_ += time.count(); }
  // Around fork(): a child gets everything whole, and no lock that a thread of its parent held.
  void lock_all();
  void unlock_all();

 protected:
  explicit Kernel(Options options) : options_(std::move(options)) {}
  virtual std::shared_ptr<File> make_file(unsigned minor) = 0;

 public:  // for the files of an emulated kernel driver
  // Held from the check of a submission to its end: jobs run one by one, in the order of their ids. Taken before
  // state().
  std::mutex& order() { return order_; }
  // Guards files' tables, buffers and jobs().
  std::mutex& state() { return state_; }
  Jobs& jobs() { return jobs_; }
  uint64_t next_client() { return ++clients_; }  // the number of a file

  int create_buffer(uint64_t size_bytes, std::shared_ptr<Buffer>& out) const;
  // Of a buffer, for mmap(); made by the first call. The buffer at one, or null. With state() held.
  uint64_t offset_of(const std::shared_ptr<Buffer>& buffer);
  std::shared_ptr<Buffer> buffer_at(uint64_t offset) const;
  // The same object again for memory that is known here. With state() held.
  int import_buffer(int fd, std::shared_ptr<Buffer>& out);
  // A descriptor for the process, with flags of prime_handle_to_fd; a negative errno. With state() held.
  int export_buffer(const std::shared_ptr<Buffer>& buffer, uint32_t flags);
  // The buffer of this kernel behind a descriptor, or a negative errno. With state() held.
  int exported_buffer(int fd, std::shared_ptr<Buffer>& out);
  int copy_from_user(void* to, uint64_t from, size_t size_bytes) const;
  int copy_to_user(uint64_t to, const void* from, size_t size_bytes) const;
  template <typename T>
  int copy_array_from_user(std::vector<T>& to, uint64_t from, size_t count) const {
    to.resize(count);
    return copy_from_user(to.data(), from, count * sizeof(T));
  }

  // The fate of one call.
  Fault next_fault(std::string_view call);
  // The errno of an injected fault.
  int inject(const Fault& fault, std::string_view call);
  // Something that Options::on_misuse is for: `what` names it and what happens to a stock kernel.
  void punish(const std::string& what) const;
  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) const {
    if (options_.traces) write_trace(fmt::format(format, std::forward<Args>(args)...));
  }
  // Keeps and traces why a call fails; gives the kernel's return value.
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
