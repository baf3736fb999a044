// Kernel: an emulation of the mainline kernel driver rocket (Linux 6.18): one node for all cores, a thread for each
// core that runs jobs. A job that the kernel cannot queue is dropped without a word, and one that stalls ends after 500
// ms like one that is done. What a stock kernel does not survive is punished as Options::on_misuse says.
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
  std::vector<JobId> after;                      // those whose buffers it shares
  std::vector<std::shared_ptr<Buffer>> buffers;  // kept until it ends
  std::vector<const Buffer*> written;            // of them: nobody waits for what it writes elsewhere
  std::vector<const Buffer*> unordered;          // others, which jobs before it still write: no fence orders them
  FaultKind fault = FaultKind::none;
};

// A buffer of a file in the address space of that file.
struct Mapping {
  std::shared_ptr<Buffer> buffer;
  uint64_t address = 0;
};

class RocketFile;

// What a file has queued. While it has, it stays with one core, in order.
struct Entity {
  const RocketFile& file;
  std::deque<QueuedJob> jobs;
  uint32_t core = 0;
  bool is_running = false;
  const QueuedJob* running = nullptr;  // while its commands may still be read
  // By Kernel::now(), which a slow simulator does not stretch: when the last job's fence came, and when it comes at the
  // latest, as the kernel ends each job by its timeout.
  std::optional<std::chrono::steady_clock::time_point> ended;
  std::chrono::steady_clock::time_point latest_end{};
  std::string fault;  // of a job that the simulator stopped, with OnFault::error: for the next call
};

class Kernel : public fake::Kernel {
 public:
  Kernel(std::string chip, std::unique_ptr<sim::Device> simulator, Options options);
  ~Kernel() override;
  NodePlace place() const override;
  const std::string& chip() const { return chip_; }

  // With state() held, all five.
  void add(Entity& entity);
  // Before the first job of a submission. A negative errno: none can be queued.
  int start_workers(std::unique_lock<std::mutex>& lock);
  void queue(Entity& entity, QueuedJob job);
  // After fork() there are no threads, and what ran in the parent will not end here.
  void adopt_process();
  // What becomes of a stock kernel when the file of `entity` is closed now.
  void check_close(const Entity& entity) const;
  // Drops what is queued and waits for what runs; the last entity takes the threads along.
  void remove(Entity& entity, std::unique_lock<std::mutex>& lock);

 protected:
  std::shared_ptr<File> make_file(unsigned minor) override;

 private:
  struct Workers {
    std::vector<std::thread> threads;
    Condition changed;
    bool stops = false;
  };

  // Jobs that do nothing have ended when they are queued.
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
  uint32_t random_ = 0;  // of Options::schedule
};

// Whether the chip stands behind this kernel.
bool has(std::string_view chip);
std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options);

// What a FaultPlan may name.
std::vector<std::string_view> call_names();

}  // namespace skillet::fake::rocket
