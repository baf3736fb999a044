#include "kernels/rocket/fake/kernel.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/caught.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "kernels/rocket/fake/file.h"
#include "kernels/rocket/fake/identity.h"

namespace skillet::fake::rocket {

Kernel::Kernel(std::string chip, std::unique_ptr<sim::Device> simulator, Options options)
    : fake::Kernel(std::move(options)),
      chip_(std::move(chip)),
      simulator_(std::move(simulator)),
      cores_(simulator_ == nullptr ? 1 : simulator_->cores()),
      owner_(::getpid()),
      random_(this->options().schedule) {}

Kernel::~Kernel() = default;

std::shared_ptr<File> Kernel::make_file(unsigned minor) { return std::make_shared<RocketFile>(*this, minor); }

// The node belongs to a platform device that represents all cores and is not in the device tree.
NodePlace Kernel::place() const {
  return {.subsystem = "accel",
          .folder = "/dev/accel",
          .major = abi::kAccelMajor,
          .driver = abi::kDriverName,
          .device_name = "rknn",
          .of_full_name = "",
          .compatible = "",
          .cores = cores_of(chip_).value_or(std::vector<NodePlace::Device>()),
          .nodes = {{"accel0", 0}}};
}

void Kernel::add(Entity& entity) { entities_.push_back(&entity); }

void Kernel::queue(Entity& entity, QueuedJob job) {
  if (!needs_workers()) return end_at_once(entity, job);
  if (entity.jobs.empty() && !entity.is_running) {
    const auto load = [&](uint32_t core) {
      return std::ranges::count_if(
          entities_, [&](const Entity* one) { return one->core == core && (one->is_running || !one->jobs.empty()); });
    };
    if (options().schedule != 0) entity.core = draw() % cores_;
    for (uint32_t core = 0; core < cores_; ++core) {
      if (load(core) < load(entity.core)) entity.core = core;
    }
  }
  entity.jobs.push_back(std::move(job));
  entity.latest_end = now() + (entity.jobs.size() + (entity.is_running ? 1 : 0)) * kJobTimeout;
  workers_->changed.notify_all();
}

void Kernel::end_at_once(Entity& entity, const QueuedJob& job) {
  jobs().finish(job.id);
  entity.ended = now();
}

// Starts a thread for each core, or none. Never returns EAGAIN: clients would retry for ever.
int Kernel::start_workers(std::unique_lock<std::mutex>& lock) {
  if (workers_ != nullptr || !needs_workers()) return 0;
  workers_ = std::make_unique<Workers>();
  const Result<void> started = caught([&]() -> Result<void> {
    workers_->threads.reserve(cores_);
    for (uint32_t core = 0; core < cores_; ++core)
      workers_->threads.emplace_back([this, core, &workers = *workers_] { work(core, workers); });
    return {};
  });
  if (started.ok()) return 0;
  const size_t count = workers_->threads.size();
  stop_workers(lock);
  return refuse(ENOMEM, "submit: the thread of core {} of {} cannot be started: {}", count, cores_,
                started.error().message);
}

void Kernel::stop_workers(std::unique_lock<std::mutex>& lock) {
  const std::unique_ptr<Workers> last = std::move(workers_);
  last->stops = true;
  last->changed.notify_all();
  lock.unlock();
  for (std::thread& thread : last->threads) thread.join();
  lock.lock();
}

void Kernel::adopt_process() {
  if (owner_ == ::getpid()) return;
  owner_ = ::getpid();
  static_cast<void>(workers_.release());  // nonexistent threads can be neither joined nor destroyed
  jobs().finish_all();
  for (Entity* entity : entities_) {
    entity->jobs.clear();
    entity->is_running = false;
    entity->ended.reset();
  }
}

void Kernel::check_close(const Entity& entity) const {
  constexpr std::string_view kEffect = "use after free in a stock kernel";
  const size_t unfinished = entity.jobs.size() + (entity.is_running ? 1 : 0);
  if (unfinished == 0 && !entity.ended) return;  // it never had a job
  const auto since = now() - (unfinished != 0 ? entity.latest_end : *entity.ended);
  if (since >= options().release_time) return;
  if (unfinished != 0)
    return punish(fmt::format("file closed while {} of its jobs are queued or run: {}", unfinished, kEffect));
  punish(fmt::format("file closed {} us after its last job while its buffers were still to be released: {}",
                     std::chrono::duration_cast<std::chrono::microseconds>(since).count(), kEffect));
}

void Kernel::remove(Entity& entity, std::unique_lock<std::mutex>& lock) {
  adopt_process();
  for (const QueuedJob& job : entity.jobs) jobs().finish(job.id);
  entity.jobs.clear();
  if (workers_ != nullptr) workers_->changed.wait(lock, [&] { return !entity.is_running; });
  std::erase(entities_, &entity);
  if (entities_.empty() && workers_ != nullptr) stop_workers(lock);
}

void Kernel::work(uint32_t core, Workers& workers) {
  std::unique_lock lock(state());
  while (!workers.stops) {
    size_t job = 0;
    Entity* const entity = next(core, job);
    if (entity == nullptr) {
      workers.changed.wait(lock);
    } else {
      run(core, *entity, job, workers, lock);
    }
  }
}

uint32_t Kernel::draw() { return (random_ = random_ * 1664525 + 1013904223) >> 16; }

// The oldest job, if it may start. With a schedule any job that may: if a file's queue has run empty, its next job may
// go to another core, and overtake jobs that no fence orders before it.
std::optional<size_t> Kernel::ready_job(const Entity& entity) {
  std::vector<size_t> ready;
  for (size_t i = 0; i < entity.jobs.size() && (i == 0 || options().schedule != 0); ++i) {
    if (std::ranges::all_of(entity.jobs[i].after, [&](JobId id) { return jobs().is_finished(id); })) ready.push_back(i);
  }
  if (ready.empty()) return std::nullopt;
  return ready[ready.size() == 1 ? 0 : draw() % ready.size()];
}

// The first entity with a job that may start; entities that have run move to the end of the list.
Entity* Kernel::next(uint32_t core, size_t& job) {
  const auto is_ready = [&](const Entity* one) {
    if (one->core != core || one->is_running) return false;
    const std::optional<size_t> ready = ready_job(*one);
    job = ready.value_or(0);
    return ready.has_value();
  };
  const auto found = std::ranges::find_if(entities_, is_ready);
  if (found == entities_.end()) return nullptr;
  Entity* const entity = *found;
  std::rotate(found, found + 1, entities_.end());
  return entity;
}

static bool waits(FaultKind fault) { return fault == FaultKind::hang || fault == FaultKind::late; }

void Kernel::run(uint32_t core, Entity& entity, size_t which, Workers& workers, std::unique_lock<std::mutex>& lock) {
  QueuedJob job = std::move(entity.jobs[which]);
  entity.jobs.erase(entity.jobs.begin() + static_cast<std::ptrdiff_t>(which));
  entity.is_running = true;
  entity.running = &job;
  std::vector<Mapping> mappings;
  Result<void> done = compute(core, entity, job, mappings, lock);
  // A job that waits for ever ends by the kernel's timeout.
  const bool stalls = waits(job.fault) || (!done.ok() && done.error().code == ErrorCode::timeout);
  if (stalls) {
    jobs().stall(job.id);
    workers.changed.wait_for(lock, kJobTimeout, [&] { return workers.stops || jobs().is_finished(job.id); });
  }
  entity.running = nullptr;
  end(core, entity, job, std::move(done));
  workers.changed.notify_all();
  // Dropping the last reference to a buffer calls close(), which may be a hook with its own lock.
  lock.unlock();
  mappings.clear();
  job = {};
  lock.lock();
}

// Unlocks `lock` while it runs. Exceptions count as faults of the job.
Result<void> Kernel::compute(uint32_t core, const Entity& entity, const QueuedJob& job, std::vector<Mapping>& mappings,
                             std::unique_lock<std::mutex>& lock) {
  Result<void> done = caught([&]() -> Result<void> {
    mappings = entity.file.mappings();
    return {};
  });
  lock.unlock();
  if (done.ok()) {
    done = caught([&] {
      const Stopwatch clock;
      Result<void> ran = simulate(core, job, mappings);
      trace("job {} on core {}: {:.3f} ms", job.id, core, clock.ms());
      return ran;
    });
  }
  lock.lock();
  return done;
}

Result<void> Kernel::simulate(uint32_t core, const QueuedJob& job, const std::vector<Mapping>& mappings) {
  if (simulator_ == nullptr || job.fault == FaultKind::hang) return {};
  if (job.fault == FaultKind::reset || job.fault == FaultKind::reset_before) simulator_->reset(core);
  if (job.fault == FaultKind::reset) return {};
  sim::Memory memory;
  for (const Mapping& one : mappings) {
    const uint64_t size = options().is_own_process ? one.buffer->asked_bytes() : one.buffer->size_bytes();
    const std::span<uint8_t> bytes = one.buffer->bytes().first(size);
    // The kernel accepts such a job, but no fence orders it after the writers of buffers that it does not list.
    if (std::ranges::find(job.unordered, one.buffer.get()) != job.unordered.end()) {
      SK_TRY(
          memory.map_to_refuse(one.address, bytes,
                               fmt::format("an earlier job writes the buffer at {:#x}, which this one does not list: "
                                           "nothing orders them",
                                           one.address)));
      continue;
    }
    const bool is_written =
        !options().checks_lists || std::ranges::find(job.written, one.buffer.get()) != job.written.end();
    if (is_written) {
      SK_TRY(memory.map(one.address, bytes, fmt::format("buffer at {:#x}", one.address)));
    } else {
      SK_TRY(memory.map_to_read(one.address, bytes,
                                fmt::format("buffer at {:#x}, which the job does not list as written", one.address)));
    }
  }
  const sim::Job task_list{.commands = job.tasks, .core = core};
  {
    const skillet::trace::Slice slice(skillet::trace::kSimulate);
    SK_TRY(simulator_->run(task_list, memory));
  }
  if (options().clock != nullptr) options().clock->count_job(task_list, memory);
  return {};
}

// A job ended by a reset signals like a finished one. Failures here must not keep it from ending.
void Kernel::end(uint32_t core, Entity& entity, const QueuedJob& job, Result<void> done) {
  const bool is_error = !done.ok() && options().on_fault == OnFault::error;
  static_cast<void>(caught([&]() -> Result<void> {
    if (!done.ok() && simulator_ != nullptr) simulator_->reset(core);
    if (!done.ok() && !is_error)
      log::warning("virtual {}: core {}: NPU job timed out: {}", chip_, core, done.error().message);
    trace("job {} ends on core {}", job.id, core);
    return {};
  }));
  if (is_error) entity.fault = std::move(done).error().message;
  jobs().finish(job.id);
  entity.is_running = false;
  entity.ended = std::min(now(), entity.latest_end);
}

bool has(std::string_view chip) { return cores_of(chip).has_value(); }

std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options) {
  return std::make_unique<Kernel>(chip, std::move(simulator), std::move(options));
}

}  // namespace skillet::fake::rocket
