// One core: fetches commands, writes registers, starts blocks.
// Called by npu.cpp.
// Must not know: other cores, what the units compute.
#pragma once

#include <map>
#include <memory>

#include "npus/rockchip/sim/conv_job.h"
#include "npus/rockchip/sim/front.h"
#include "npus/rockchip/sim/lut.h"
#include "npus/rockchip/sim/npu.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

class Core {
 public:
  Core(int index, const hw::ChipRow& chip, const Options& options)
      : index_(index), chip_(chip), options_(options), registers_(make_registers()) {}

  Result<TaskResult> run(const Task& task, const Memory& memory);
  void reset() {
    registers_ = make_registers();
    weights_ = {};
    rows_ = {};
    tables_ = {};
  }

 private:
  Registers make_registers() const { return Registers(index_, hw::registers_of(chip_), chip_.has(hw::kStreamsPoint)); }
  // Commands of one fetch, and the place of the next one.
  struct Stream {
    uint64_t address = 0;
    uint64_t commands = 0;
    uint64_t counted = 0;     // commands within the stream's length; the chip may fetch one more
    bool redirected = false;  // a command of this fetch named the next one
    bool has_amount = false;  // a command of this fetch gave the next one's number of commands
    bool started = false;     // a command of this fetch started blocks
    bool barrier = false;     // the command before was a barrier
  };
  // What CBUF keeps between the tasks of a job.
  struct KeptWeights {
    std::vector<uint8_t> bytes;
    uint32_t data_banks = 0, weight_banks = 0;
    int64_t address = 0;
  };
  // Unpacked weights, by hash of their bytes and shape: they rarely change between inferences.
  using WeightsKey = std::pair<uint64_t, uint64_t>;
  struct ReadWeights {
    std::map<WeightsKey, std::shared_ptr<const ConvWeights>> of;
    uint64_t bytes = 0;
  };

  Result<void> run_chain(const Task& task, const Dma& dma, TaskResult& result);
  Result<void> run_stream(Stream& stream, const Dma& dma, TaskResult& result);
  Result<void> execute(const hw::Command& command, Stream& stream, const Dma& dma, TaskResult& result);
  Result<void> write_pc(const hw::Command& command, Stream& stream);
  Result<void> write_tables(const hw::Command& command);
  Result<void> check_pointers_of(Block block, const hw::Command& command) const;
  Result<void> check_next(const Stream& stream, const Task& task) const;
  Result<uint32_t> start(uint32_t blocks, const Dma& dma, TaskResult& result);
  Result<void> check_width();
  Result<void> run_blocks(const hw::BlockEnable& enable, const Dma& dma, TaskResult& result);
  Result<void> run_convolution(const Dma& dma, TaskResult& result);
  void add_second_weights(const ConvJob& conv, ConvOperands operands, ConvSums& sums) const;
  Result<void> fetch_weights(const ConvJob& job, const Dma& dma);
  std::shared_ptr<const ConvWeights> weights_of(const ConvJob& job);
  Result<void> check_reused(const ConvJob& job) const;
  Result<void> keep_rows(const KeptRows& rows);
  Result<void> check_stale() const;

  int index_;
  const hw::ChipRow& chip_;
  Options options_;
  const Front& front_ = front_of(chip_);
  Registers registers_;
  KeptWeights weights_;
  KeptRows rows_;
  ReadWeights read_weights_;
  Tables tables_;                                  // each job must load the tables that it uses
  WrittenBytes written_;                           // by the tasks of this job so far, if a quirk uses them
  uint64_t next_address_ = 0, next_commands_ = 0;  // pc.base_address, pc.register_amounts
  // Errata. `loses_weights_`: another core has a job. `is_poisoned_`: no task writes until the next power cycle; a
  // reset does not help.
  bool loses_weights_ = false, is_poisoned_ = false;
};

}  // namespace skillet::sim::rockchip
