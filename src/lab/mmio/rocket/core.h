// Core: a core of a Rockchip NPU as Linux's rocket sees it (PC unit, interrupts, resets), and Rockchip's IOMMU as its
// driver sees it. The simulator runs the tasks. Source: hardware specification kernel-mmio 2, rockchip 2.4. Called by
// board.h. Must not know: the bus, what a task computes.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lab/mmio/device.h"
#include "lab/mmio/faults.h"
#include "lab/mmio/job_watch.h"
#include "lab/mmio/worker.h"
#include "npus/rockchip/sim/npu.h"

namespace skillet::mmio::rocket {

// Offsets of the parts of a core from its first register, within the device.
inline constexpr uint64_t kIommuOffset = 0x9000, kIommuStride = 0x1000, kIommuBytes = 0x100;
inline constexpr uint64_t kResetOffset = 0x10000, kResetBytes = 0x1000;
inline constexpr uint32_t kMostIommuSets = 2;

class Core final : public Device {
 public:
  // `iommu_sets`: number of register sets of its IOMMU. `npu` is shared with the other cores.
  Core(std::string name, uint32_t index, uint32_t iommu_sets, std::shared_ptr<sim::rockchip::Npu> npu, Faults faults,
       Surroundings around, JobWatch watch = {});
  ~Core() override;

  uint32_t read(uint64_t offset) override;
  void write(uint64_t offset, uint32_t value) override;
  std::string register_name(uint64_t offset) const override;
  void stop() override;
  std::string summary() const override;

 private:
  using Lock = Worker::Lock;
  struct Task {
    sim::rockchip::Task start;
    FaultKind fault = FaultKind::none;
  };
  struct Set {
    uint32_t directory = 0, status = 0, fault_address = 0, raw = 0, mask = 0, gating = 0;
  };

  uint32_t read_iommu(const Set& set, uint32_t offset) const;
  void write_iommu(Set& set, uint32_t offset, uint32_t value);
  void command(Set& set, uint32_t value);
  void write_core(uint32_t offset, uint32_t value);
  void write_resets(uint32_t value);
  void start();
  void update_line();
  void page_fault(uint64_t address, bool is_write);
  void run_next(Lock& lock);
  void run(const Task& task, Lock& lock);

  const std::string name_;
  const uint32_t index_;
  const uint32_t iommu_sets_;
  const std::shared_ptr<sim::rockchip::Npu> npu_;
  const Surroundings around_;

  Faults faults_;
  JobWatch watch_;
  std::map<uint32_t, uint32_t> registers_;
  std::array<Set, kMostIommuSets> sets_;
  static constexpr uint32_t kNoReset = 3;  // both lines are high
  uint32_t raw_ = 0, resets_ = kNoReset;
  std::optional<Task> next_;
  bool is_first_of_job_ = true, is_spurious_ = false, is_off_ = false;  // is_off_: without power
  AddressSpace space_;
  std::atomic<uint64_t> pages_ = 0;   // of the last task
  std::atomic<uint64_t> walked_ = 0;  // of all tasks
  uint64_t tasks_ = 0, jobs_ = 0, faults_seen_ = 0, count_resets_ = 0;
  Worker worker_;  // last, as its thread uses the other members
};

}  // namespace skillet::mmio::rocket
