// Core: an Ethos-U65 as Linux's ethosu sees it: a queue of one job, regions in the guest's own memory, resets. The
// simulator runs the commands. Source: hardware specification kernel-mmio 3, ethosu 1.3.
// Called by place.cpp and tests.
// Must not know: the bus, what a command computes.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/ethosu/fake/identity.h"
#include "lab/mmio/device.h"
#include "lab/mmio/faults.h"
#include "lab/mmio/job_watch.h"
#include "lab/mmio/worker.h"
#include "sim/sim.h"

namespace skillet::mmio::ethosu {

inline constexpr uint64_t kRegisterBytes = 0x1000;

class Core final : public Device {
 public:
  struct Identity {
    uint32_t id = 0, config = 0;
    // Returns how far a stream reaches into its regions: registers hold no region's end. Null: nothing is recorded.
    Result<fake::ethosu::StreamNeeds> (*check)(std::span<const uint32_t> stream) = nullptr;
  };
  Core(std::string name, Identity identity, std::unique_ptr<sim::Device> chip, Faults faults, Surroundings around,
       JobWatch watch = {});
  ~Core() override;

  uint32_t read(uint64_t offset) override;
  void write(uint64_t offset, uint32_t value) override;
  std::string register_name(uint64_t offset) const override;
  void stop() override;
  std::string summary() const override;

 private:
  static constexpr size_t kRegions = 8;
  using Lock = Worker::Lock;
  struct Job {
    uint64_t queue = 0;
    uint32_t queue_bytes = 0;
    std::array<uint64_t, kRegions> bases{};
    FaultKind fault = FaultKind::none;
  };

  void write_command(uint32_t value);
  void start();
  void reset_now();
  void update_line();
  uint32_t status() const;
  uint64_t pair(uint32_t offset) const;
  void run_next(Lock& lock);
  void run(const Job& job, Lock& lock);
  Result<void> compute(const Job& job);
  void record(const std::vector<uint32_t>& words, const sim::Memory& memory);

  const std::string name_;
  const Identity identity_;
  const std::unique_ptr<sim::Device> chip_;
  const Surroundings around_;

  Faults faults_;
  JobWatch watch_;
  std::array<uint32_t, kRegisterBytes / sizeof(uint32_t)> registers_{};
  uint32_t ended_ = 0;        // bits of STATUS from the last job
  uint32_t read_offset_ = 0;  // in the queue
  std::optional<Job> next_;
  bool is_off_ = false;               // without power
  bool runs_ = false;                 // a job has begun and not ended; it may hang
  std::atomic<bool> resets_ = false;  // a reset waits for the thread
  std::atomic<bool> stops_ = false;   // the result of the job is no longer needed
  uint64_t jobs_ = 0, failed_ = 0, count_resets_ = 0;
  Worker worker_;  // last, as its thread uses the other members
};

}  // namespace skillet::mmio::ethosu
