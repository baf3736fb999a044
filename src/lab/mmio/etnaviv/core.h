// Core: a Vivante core as Linux's etnaviv sees it: identity, clocks and reset, front end with its ring buffer, events
// and interrupts, MMUv2. The simulator runs the streams of jobs. Source: hardware specification kernel-mmio 1. Called
// by board.h. Must not know: the bus, what a job computes.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/mmio/device.h"
#include "lab/mmio/faults.h"
#include "lab/mmio/job_watch.h"
#include "lab/mmio/worker.h"
#include "sim/sim.h"

namespace skillet::mmio::etnaviv {

// Values of the identity registers.
struct Identity {
  std::array<uint32_t, 5> ids = {};        // model, revision, product, customer, eco
  std::array<uint32_t, 13> features = {};  // FEATURE, MINOR_FEATURE_0 to 11
};

class Core final : public Device {
 public:
  Core(std::string name, const Identity& identity, std::unique_ptr<sim::Device> simulator, Faults faults,
       Surroundings around, JobWatch watch = {});
  ~Core() override;

  uint32_t read(uint64_t offset) override;
  void write(uint64_t offset, uint32_t value) override;
  std::string register_name(uint64_t offset) const override;
  void stop() override;
  std::string summary() const override;

 private:
  using Lock = Worker::Lock;
  enum class State : uint8_t { stopped, running, hung };

  void start(uint32_t prefetch);
  void reset(bool is_secure);
  void update_line();
  void raise(uint32_t bits);
  void mmu_exception(uint32_t address, uint32_t status);

  // Runs the front end, in its own thread. The lock is held, except while a job runs.
  void run_front_end(Lock& lock);
  void step(Lock& lock);
  bool fetch(uint32_t address, uint32_t& word);
  bool fetch_packet(uint32_t address, uint32_t& head, uint32_t& next);
  void link(uint32_t words64, uint32_t target, Lock& lock);
  void load_state(uint32_t state, uint32_t value);
  void run_job(std::vector<uint32_t> stream, uint32_t return_at, Lock& lock);

  std::optional<uint64_t> master_table() const;
  std::optional<uint64_t> translate(uint32_t address, bool is_told);

  const std::string name_;
  const Identity identity_;
  const std::unique_ptr<sim::Device> simulator_;
  const Surroundings around_;

  Faults faults_;
  JobWatch watch_;
  std::map<uint32_t, uint32_t> registers_;
  uint32_t pending_ = 0;
  State state_ = State::stopped;
  bool is_off_ = false;           // without power
  bool loses_interrupt_ = false;  // of the next event
  uint32_t at_ = 0;               // device address of the next packet
  uint32_t progress_ = 0;         // value of the profile counter
  uint32_t steps_ = 0;            // since the last WAIT
  uint32_t context_ = 0;          // index in the page table array
  uint32_t configuration_ = 0;    // of the MMU, if there is no such array
  bool mmu_is_on_ = false, is_secure_ = false;
  AddressSpace space_;
  std::atomic<uint64_t> pages_ = 0;   // of the last job
  std::atomic<uint64_t> walked_ = 0;  // of all jobs
  uint64_t jobs_ = 0, events_ = 0, exceptions_ = 0, resets_ = 0;
  Worker front_end_;  // last, as its thread uses the other members
};

}  // namespace skillet::mmio::etnaviv
