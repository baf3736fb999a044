#include "npus/rockchip/sim/task.h"

#include "base/bytes.h"
#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr std::array kBlocksOf = {std::pair{uint32_t{1}, Block::cna},  std::pair{uint32_t{4}, Block::core},
                                  std::pair{uint32_t{8}, Block::dpu},  std::pair{uint32_t{16}, Block::dpu_rdma},
                                  std::pair{uint32_t{32}, Block::ppu}, std::pair{uint32_t{64}, Block::ppu_rdma}};

Result<void> write(Registers& registers, const hw::Command& command) {
  switch (command.target) {
    case hw::Target::none:
    case hw::Target::barrier:
    case hw::Target::pc: return {};
    case hw::Target::cna:
    case hw::Target::core:
    case hw::Target::dpu:
    case hw::Target::dpu_rdma:
    case hw::Target::ppu:
    case hw::Target::ppu_rdma:
      return registers.write(static_cast<Block>(command.address / hw::kBlockBytes), command.address, command.value);
    default: return not_modelled("target 0x{:04x}: there is none", static_cast<uint32_t>(command.target));
  }
}

}  // namespace

Result<uint32_t> read_task(Registers& registers, const Dma& dma, const Commands& task, const Options& options) {
  const uint64_t count = task.size_bytes / hw::kCommandBytes;
  if (count == 0 || count > options.max_elements_per_task) return not_modelled("{} commands", count);
  SK_TRY_ASSIGN(const std::vector<uint8_t> bytes, dma.read(task.address, count * hw::kCommandBytes, "commands"));
  for (uint64_t i = 0; i < count; ++i) {
    const std::array words{load_le<uint32_t>(&bytes[i * 8]), load_le<uint32_t>(&bytes[i * 8 + 4])};
    const auto command = bits::read<hw::Command>(words);
    if (command.target == hw::Target::enable) return command.value;
    SK_TRY_IN_CONTEXT(write(registers, command), fmt::format("command {}", i));
  }
  return stall("the stream starts no block");
}

void finish_task(Registers& registers, uint32_t blocks) {
  for (const auto& [bit, block] : kBlocksOf) {
    if (blocks & bit) registers.finish(block);
  }
}

}  // namespace skillet::sim::rockchip
