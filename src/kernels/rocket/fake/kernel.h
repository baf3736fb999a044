// Kernel: an emulated mainline kernel driver rocket (Linux 6.18): one node for all cores, and a thread for each core
// that runs jobs. A job that the kernel cannot queue is silently dropped, and one that stalls ends after 500 ms like a
// finished one. Options::on_misuse applies to misuse that a stock kernel does not survive.
// Called by open_simulated() and the virtual device node, through the table of emulated kernel drivers, and by tests.
// Must not know: descriptors of the process, paths, registers.
#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/fake/kernel.h"
#include "kernels/rocket/abi.h"
#include "sim/sim.h"

namespace skillet::fake::rocket {

namespace abi = ::skillet::kernels::rocket;
namespace drm = ::skillet::kernels::drm;

struct QueuedJob {
  JobId id = 0;
  std::vector<sim::Commands> tasks;
  std::vector<JobId> after;                      // jobs with shared buffers
  std::vector<std::shared_ptr<Buffer>> buffers;  // kept until it ends
  std::vector<const Buffer*> written;            // subset of buffers: waits ignore writes elsewhere
  std::vector<const Buffer*> unordered;          // other buffers, which earlier jobs still write: no fence orders them
  FaultKind fault = FaultKind::none;
};

// A buffer of a file and its address in the file's address space.
struct Mapping {
  std::shared_ptr<Buffer> buffer;
  uint64_t address = 0;
};

class RocketFile;

// Queue of a file. While it is not empty, its jobs stay on one core, in order.
struct Entity {
  const RocketFile& file;
  std::deque<QueuedJob> jobs;
  uint32_t core = 0;
  bool is_running = false;
  const QueuedJob* running = nullptr;  // while its commands may still be read
  // By Kernel::now(), which is independent of a slow simulator: time of the last job's fence, and its latest possible
  // time, because the kernel ends each job by its timeout.
  std::optional<std::chrono::steady_clock::time_point> ended;
  std::chrono::steady_clock::time_point latest_end{};
  std::string fault;  // of a job that the simulator stopped, with OnFault::error; returned by the next call
};

class Kernel : public fake::Kernel {
 public:
  Kernel(std::string chip, std::unique_ptr<sim::Device> simulator, Options options);
  ~Kernel() override;
  NodePlace place() const override;
  const std::string& chip() const { return chip_; }

  // All five require state().
  void add(Entity& entity);
  // Call before the first job of a submission. A negative errno: no job can be queued.
  int start_workers(std::unique_lock<std::mutex>& lock);
  void queue(Entity& entity, QueuedJob job);
  // Call after fork(): there are no threads, and jobs that ran in the parent do not end here.
  void adopt_process();
  // Checks what a stock kernel would do if the file of `entity` were closed now.
  void check_close(const Entity& entity) const;
  // Drops queued jobs and waits for running ones; the last entity stops the threads.
  void remove(Entity& entity, std::unique_lock<std::mutex>& lock);

 protected:
  std::shared_ptr<File> make_file(unsigned minor) override;

 private:
  struct Workers {
    std::vector<std::thread> threads;
    Condition changed;
    bool stops = false;
  };

  // If jobs do nothing, they end when they are queued.
  bool needs_workers() const { return simulator_ != nullptr || !options().faults.empty(); }
  void end_at_once(Entity& entity, const QueuedJob& job);
  void stop_workers(std::unique_lock<std::mutex>& lock);
  void work(uint32_t core, Workers& workers);
  std::optional<size_t> ready_job(const Entity& entity);
  uint32_t draw();
  Entity* next(uint32_t core, size_t& job);
  void run(uint32_t core, Entity& entity, size_t which, Workers& workers, std::unique_lock<std::mutex>& lock);
  Result<void> compute(uint32_t core, const Entity& entity, const QueuedJob& job, std::vector<Mapping>& mappings,
                       std::unique_lock<std::mutex>& lock);
  Result<void> simulate(uint32_t core, const QueuedJob& job, const std::vector<Mapping>& mappings);
  void end(uint32_t core, Entity& entity, const QueuedJob& job, Result<void> done);

  std::string chip_;
  std::unique_ptr<sim::Device> simulator_;  // null: jobs do nothing
  uint32_t cores_ = 1;
  // Guarded by state():
  std::vector<Entity*> entities_;
  std::unique_ptr<Workers> workers_;  // from the first job on
  pid_t owner_ = 0;
  uint32_t random_ = 0;  // state of the random order, see Options::schedule
};

// True if the chip belongs to this kernel driver.
bool has(std::string_view chip);
std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options);

// Names of calls that a FaultPlan may use.
std::vector<std::string_view> call_names();

}  // namespace skillet::fake::rocket
