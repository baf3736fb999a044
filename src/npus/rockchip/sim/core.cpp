#include "npus/rockchip/sim/core.h"

#include <array>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"
#include "base/int_math.h"
#include "npus/rockchip/sim/conv.h"
#include "npus/rockchip/sim/dpu.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/ppu.h"
#include "npus/rockchip/sim/quirks.h"

namespace skillet::sim::rockchip {
namespace {

// Sets of blocks that programs start together.
constexpr uint32_t kConvolution = 0x1D, kDpuAlone = 0x18, kPooling = 0x60;

constexpr uint64_t kReadWeightsLimitBytes = uint64_t{256} << 20;

struct Unit {
  Block block;
  uint32_t enable_bit;
  uint32_t done;  // RawStatus bits of group 0
};
constexpr std::array kUnits = {Unit{Block::cna, 1, kCnaFeature | kCnaWeight | kCnaSequencer},
                               Unit{Block::core, 4, kCore},
                               Unit{Block::dpu, 8, kDpu},
                               Unit{Block::dpu_rdma, 16, 0},
                               Unit{Block::ppu, 32, kPpu},
                               Unit{Block::ppu_rdma, 64, 0}};

Result<Block> block_of(hw::Target target) {
  switch (target) {
    case hw::Target::cna: return Block::cna;
    case hw::Target::core: return Block::core;
    case hw::Target::dpu: return Block::dpu;
    case hw::Target::dpu_rdma: return Block::dpu_rdma;
    case hw::Target::ppu: return Block::ppu;
    case hw::Target::ppu_rdma: return Block::ppu_rdma;
    default: return not_modelled("target 0x{:04x}: there is none", static_cast<uint32_t>(target));
  }
}

}  // namespace

Result<TaskResult> Core::run(const Task& task, const Memory& memory) {
  TaskResult result;
  if (chip_.has(hw::kPoolingCompletes)) result.also_completes = kPpu | kPpu << 1;
  if (is_poisoned_) {
    result.raw_status = kDpu;
    return result;
  }
  loses_weights_ = task.loses_weights;
  if (task.regcmd_count == 0 || task.regcmd % hw::kStreamAlignBytes != 0)
    return not_modelled("task: {} commands at {:#x}", task.regcmd_count, task.regcmd);
  if (task.first_of_job) weights_ = {};
  if (task.first_of_job) rows_ = {};
  if (task.first_of_job || options_.forgets_tables) tables_ = {};
  if (task.first_of_job) written_ = {};
  // The kernel writes these two before each start.
  for (const Block block : {Block::cna, Block::core})
    SK_TRY(registers_.write(block, static_cast<uint32_t>(block) * hw::kBlockBytes + 4,
                            hw::kPointerPingPong | static_cast<uint32_t>(index_) << 28));
  next_address_ = next_commands_ = 0;  // the kernel's values are those of this task itself
  const Dma dma(memory, options_.writes, &written_);
  auto done = run_chain(task, dma, result);
  if (done.ok() && task.next_regcmd == 0) done = dma.finish_job();
  if (done.ok()) return result;
  if (!is_stall(done.error())) return std::move(done).error();
  result.stall = done.error().message;
  return result;
}

Result<void> Core::run_chain(const Task& task, const Dma& dma, TaskResult& result) {
  const auto unit = static_cast<uint32_t>(chip_.commands_per_fetch);
  Stream stream{
      .address = task.regcmd, .commands = align_up(uint64_t{task.regcmd_count}, unit), .counted = task.regcmd_count};
  while (true) {
    SK_TRY_IN_CONTEXT(run_stream(stream, dma, result), fmt::format("task {} at {:#x}", result.tasks, stream.address));
    SK_TRY(check_next(stream, task));
    // Without a redirection the PC stops, whatever the value of task_number.
    if (result.tasks >= task.task_number || !stream.redirected) return {};
    stream = {.address = next_address_, .commands = next_commands_, .counted = next_commands_ - 1};
  }
}

Result<void> Core::run_stream(Stream& stream, const Dma& dma, TaskResult& result) {
  if (stream.commands * hw::kCommandBytes > options_.max_elements_per_task)
    return not_modelled("a stream of {} commands", stream.commands);
  registers_.begin_task();
  SK_TRY_ASSIGN(const std::vector<uint8_t> bytes,
                dma.read(stream.address, stream.commands * hw::kCommandBytes, "commands"));
  for (uint64_t i = 0; i < stream.commands; ++i) {
    const std::array words{load_le<uint32_t>(&bytes[i * 8]), load_le<uint32_t>(&bytes[i * 8 + 4])};
    const auto command = bits::read<hw::Command>(words);
    if (stream.started && i < stream.counted)
      SK_TRY(broken(options_.stream_end, "stream_end", not_modelled("command {} follows the start of the blocks", i)));
    SK_TRY_IN_CONTEXT(execute(command, stream, dma, result), fmt::format("command {}", i));
  }
  if (!stream.started) return stall("the stream starts no block: the task never ends");
  return {};
}

Result<void> Core::execute(const hw::Command& command, Stream& stream, const Dma& dma, TaskResult& result) {
  if (command.target == hw::Target::none && command.value == 0 && command.address == 0) return {};  // filler
  if (stream.started) return not_modelled("a command after the one that starts blocks");
  const bool after_barrier = std::exchange(stream.barrier, command.target == hw::Target::barrier);
  switch (command.target) {
    case hw::Target::barrier: return {};
    case hw::Target::pc: return write_pc(command, stream);
    case hw::Target::enable: break;
    default: {
      SK_TRY_ASSIGN(const Block block, block_of(command.target));
      SK_TRY(check_pointers_of(block, command));
      SK_TRY(registers_.write(block, command.address, command.value));
      return write_tables(command);
    }
  }
  if (command.address != hw::kEnableAddress) return not_modelled("a broadcast to 0x{:04x}", command.address);
  if (!after_barrier) return stall("no barrier before the command that starts blocks");
  SK_TRY_ASSIGN(result.raw_status, start(command.value, dma, result));
  stream.started = true;
  ++result.tasks;
  return {};
}

// The pointers contain the number of the core, which a stream cannot know.
Result<void> Core::check_pointers_of(Block block, const hw::Command& command) const {
  const bool by_kernel = !chip_.has(hw::kStreamsPoint) && (block == Block::cna || block == Block::core);
  if (!by_kernel || command.address % hw::kBlockBytes != hw::CnaSPointer::kAddress % hw::kBlockBytes) return {};
  return broken(options_.pointers, "pointers",
                not_modelled("register 0x{:04x}: the kernel writes the pointers of CNA and CORE", command.address));
}

Result<void> Core::write_pc(const hw::Command& command, Stream& stream) {
  const bits::Descriptor* const descriptor = registers_.set().find(command.address);
  if (descriptor == nullptr || command.address >= hw::kBlockBytes)
    return not_modelled("pc register 0x{:04x}: there is none", command.address);
  if (command.address == hw::PcBaseAddress::kAddress) {
    const auto base = bits::read<hw::PcBaseAddress>({&command.value, 1});
    const uint32_t unknown = bits::unclaimed_bits(*descriptor, 0, command.value);
    if (base.pc_sel || unknown != 0) return not_modelled("{} <- 0x{:08x} by a stream", descriptor->name, command.value);
    next_address_ = base.pc_source_addr.offset;
    stream.redirected = next_address_ != 0;
    return {};
  }
  if (command.address == hw::PcRegisterAmounts::kAddress) {
    const auto amounts = bits::read<hw::PcRegisterAmounts>({&command.value, 1});
    if (bits::unclaimed_bits(*descriptor, 0, command.value) != 0)
      return not_modelled("{} <- 0x{:08x}: unknown bits", descriptor->name, command.value);
    stream.has_amount = amounts.pc_data_amount != 0;
    next_commands_ = (uint64_t{amounts.pc_data_amount} + 1) * static_cast<uint64_t>(chip_.commands_per_fetch);
    return {};
  }
  return not_modelled("{} <- 0x{:08x} by a stream", descriptor->name, command.value);
}

Result<void> Core::write_tables(const hw::Command& command) {
  if (command.address == hw::DpuLutAccessCfg::kAddress) return tables_.select(command.value);
  if (command.address == hw::DpuLutAccessData::kAddress) return tables_.load(command.value);
  return {};
}

// If the kernel starts each task, the last commands of a task do nothing. Known programs have them anyway.
Result<void> Core::check_next(const Stream& stream, const Task& task) const {
  if (!stream.redirected) {
    if (!stream.has_amount) return {};
    return broken(
        options_.stream_end, "stream_end",
        not_modelled("pc.register_amounts counts {} commands of a next task without an address", next_commands_));
  }
  if (task.task_number != 1 || task.next_regcmd == 0) return {};
  const uint64_t count = align_up(uint64_t{task.next_regcmd_count}, static_cast<uint64_t>(chip_.commands_per_fetch));
  if (next_address_ == task.next_regcmd && next_commands_ == count) return {};
  return broken(options_.next_task, "next_task",
                not_modelled("pc names {} commands at {:#x}, the job's next task has {} at {:#x}", next_commands_,
                             next_address_, count, task.next_regcmd));
}

Result<uint32_t> Core::start(uint32_t blocks, const Dma& dma, TaskResult& result) {
  if (blocks != kConvolution && blocks != kDpuAlone && blocks != kPooling)
    return not_modelled("blocks 0x{:x} started together: no program is known to do this", blocks);
  uint32_t status = 0;
  for (const Unit& unit : kUnits) {
    if ((blocks & unit.enable_bit) == 0) continue;
    SK_TRY(registers_.check_start(unit.block));
    const bool by_kernel = unit.block == Block::cna || unit.block == Block::core;
    if (!by_kernel && !registers_.is_pointed(unit.block))
      SK_TRY(broken(options_.pointers, "pointers",
                    not_modelled("s_pointer of block {} is not what known programs write first", unit.enable_bit)));
    status |= unit.done << registers_.executing_group(unit.block);
  }
  registers_.forget_stale();
  SK_TRY(run_blocks(bits::read<hw::BlockEnable>({&blocks, 1}), dma, result));
  for (const Unit& unit : kUnits) {
    if (blocks & unit.enable_bit) registers_.finish(unit.block);
  }
  return status;
}

Result<void> Core::check_width() {
  const hw::Precision out = registers_.get<hw::rk3576::DpuDataFormat>().out_precision;
  is_poisoned_ = out != hw::Precision::int8 && out != hw::Precision::int4;
  if (!is_poisoned_) return {};
  return stall("dpu.data_format.out_precision: outputs wider than a byte, the DPU is never done");
}

Result<void> Core::run_blocks(const hw::BlockEnable& enable, const Dma& dma, TaskResult& result) {
  if (options_.wide_output_poisons && enable.dpu) SK_TRY(check_width());
  if (enable.cna) return run_convolution(dma, result);
  if (enable.ppu) {
    SK_TRY_ASSIGN(const PoolJob job, front_.read_pool_job(registers_, options_));
    SK_TRY(check_stale());
    return run_pool(job, dma);
  }
  SK_TRY_ASSIGN(DpuJob job, front_.read_dpu_job(registers_, nullptr, options_));
  SK_TRY(check_stale());
  SK_TRY(apply_quirks(options_, nullptr, job));
  return run_dpu(job, nullptr, nullptr, tables_, options_, dma, {});
}

Result<void> Core::run_convolution(const Dma& dma, TaskResult& result) {
  SK_TRY_ASSIGN(ConvJob conv, front_.read_conv_job(registers_, chip_, options_));
  SK_TRY_ASSIGN(DpuJob dpu, front_.read_dpu_job(registers_, &conv, options_));
  SK_TRY(check_stale());
  SK_TRY(apply_quirks(options_, &conv, dpu));
  SK_TRY(keep_rows(conv.in_buffer));
  SK_TRY(fetch_weights(conv, dma));
  result.cycles += conv.cycles(chip_);
  Extent read;
  SK_TRY_ASSIGN(const ConvOperands operands, read_operands(conv, options_, dma, weights_of(conv), read));
  ConvSums sums = options_.reference_only ? convolve_plain(conv, operands) : convolve_fast(conv, operands);
  if (conv.paired_weights && !conv.first_bytes) add_second_weights(conv, operands, sums);
  return run_dpu(dpu, &conv, &sums, tables_, options_, dma, read);
}

Result<void> Core::keep_rows(const KeptRows& rows) {
  const KeptRows before = std::exchange(rows_, rows);
  if (rows.kept == 0) return {};
  const int64_t skipped = before.rows - rows.kept;
  const bool same = skipped >= 0 && before.row_units == rows.row_units && before.ring_first == rows.ring_first &&
                    before.ring_units == rows.ring_units && before.address + skipped * before.row_bytes == rows.address;
  if (same && before.unit_of(skipped) == rows.first) return {};
  return not_modelled("cna.cbuf_window.window_granule = {}: the {} rows there are not the last ones of the task before",
                      rows.first, rows.kept);
}

// Adds the products of the second bytes: the sums are linear in the weights.
void Core::add_second_weights(const ConvJob& conv, ConvOperands operands, ConvSums& sums) const {
  operands.weights = std::make_shared<const ConvWeights>(second_weights(conv, weights_.bytes));
  const ConvSums more = options_.reference_only ? convolve_plain(conv, operands) : convolve_fast(conv, operands);
  for (size_t i = 0; i < sums.sum.size(); ++i) sums.sum[i] += more.sum[i];
}

// Reused weights must be all of those that the job's last fetch left in CBUF, in the same banks.
Result<void> Core::fetch_weights(const ConvJob& job, const Dma& dma) {
  if (!job.weight_reuse) {
    weights_ = {{}, job.data_banks, job.weight_banks, job.weight_address};
    SK_TRY_ASSIGN(weights_.bytes, dma.read(static_cast<uint64_t>(job.weight_address),
                                           static_cast<uint64_t>(job.weight_bytes), "weights"));
    const auto lost = loses_weights_ ? job.weight_bytes : job.lost_bytes;
    std::fill(weights_.bytes.end() - lost, weights_.bytes.end(), uint8_t{0});
    return {};
  }
  if (weights_.bytes.empty()) return not_modelled("cna.cbuf_con0.weight_reuse, but no task of the job fetched weights");
  if (job.data_banks != weights_.data_banks || job.weight_banks != weights_.weight_banks)
    return not_modelled("cna.cbuf_con0.weight_reuse with {}+{} banks after a task with {}+{}", job.data_banks,
                        job.weight_banks, weights_.data_banks, weights_.weight_banks);
  const uint64_t room = uint64_t{job.weight_banks} * chip_.cbuf_bank_bytes;
  if (weights_.bytes.size() != static_cast<uint64_t>(job.weight_bytes) || weights_.bytes.size() > room)
    return not_modelled("cna.cbuf_con0.weight_reuse of {} bytes: the task before fetched {}, {} banks hold {}",
                        job.weight_bytes, weights_.bytes.size(), job.weight_banks, room);
  return check_reused(job);
}

Result<void> Core::check_reused(const ConvJob& job) const {
  if (job.weight_address != weights_.address)
    return broken(options_.reused_weights, "reused_weights",
                  not_modelled("cna.cbuf_con0.weight_reuse of weights at {:#x}: the job fetched those at {:#x}",
                               job.weight_address, weights_.address));
  const uint64_t sure = uint64_t{job.weight_banks - 1} * chip_.cbuf_bank_bytes;
  if (weights_.bytes.size() <= sure) return {};
  return broken(options_.free_weight_bank, "free_weight_bank",
                not_modelled("cna.cbuf_con0.weight_reuse of {} bytes in {} banks: none of them is free",
                             weights_.bytes.size(), job.weight_banks));
}

std::shared_ptr<const ConvWeights> Core::weights_of(const ConvJob& job) {
  const int64_t shape[] = {job.depthwise,     job.kernels,  job.kernel_width,
                           job.kernel_height, job.in_lanes, job.out_lanes};
  const XXH128_hash_t hash = XXH3_128bits_withSeed(weights_.bytes.data(), weights_.bytes.size(),
                                                   XXH3_64bits(static_cast<const void*>(shape), sizeof shape));
  std::shared_ptr<const ConvWeights>& known = read_weights_.of[{hash.high64, hash.low64}];
  if (known) return known;
  auto made = std::make_shared<const ConvWeights>(read_weights(job, weights_.bytes));
  read_weights_.bytes += made->plain.size() + made->packed.size() + made->pairs.size() * 2;
  if (read_weights_.bytes > kReadWeightsLimitBytes) {
    read_weights_ = {};
    return made;
  }
  known = made;
  return made;
}

Result<void> Core::check_stale() const {
  if (registers_.stale().empty()) return {};
  return broken(options_.stale_registers, "stale_registers",
                not_modelled("{} is used, but no command of this task wrote it", registers_.stale()));
}

}  // namespace skillet::sim::rockchip
