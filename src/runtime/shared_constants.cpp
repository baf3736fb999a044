#include "runtime/shared_constants.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/caught.h"
#include "base/int_math.h"
#include "base/leaked.h"
#include "base/log.h"
#include "runtime/content_hash.h"
#include "runtime/cpu_access.h"

namespace skillet::runtime {
namespace {

// Different in each process, so that nobody can construct two sets of constants with one hash.
uint64_t secret() {
  return leaked([] {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) log::warning("no random number: {}", strerror(errno));
    return random;
  });
}

std::pair<uint64_t, uint64_t> key_of(const npu::Program& program, const ConstantLayout& layout) {
  ContentHash hash(secret());
  for (size_t i = 0; i < layout.buffers.size(); ++i) {
    const SharedBytes& contents = program.buffers[layout.buffers[i]].contents;
    const uint64_t place[] = {layout.offsets[i], contents.size()};
    hash.add(place, sizeof place);
    hash.add(contents.data(), contents.size());
  }
  hash.add(&layout.size_bytes, sizeof layout.size_bytes);
  return hash.value();
}

Result<void> fill(kernels::Device& device, kernels::Handle handle, const npu::Program& program,
                  const ConstantLayout& layout) {
  SK_TRY_ASSIGN(CpuAccess access, CpuAccess::begin(device, handle, layout.size_bytes, true));
  for (size_t i = 0; i < layout.buffers.size(); ++i) {
    const SharedBytes& contents = program.buffers[layout.buffers[i]].contents;
    std::memcpy(access.bytes().data() + layout.offsets[i], contents.data(), contents.size());
  }
  return access.end();
}

}  // namespace

ConstantBlock::~ConstantBlock() {
  if (!process_.is_here()) return;
  tidy("freeing constants", [&] { return device_.free(handle_); });
}

ConstantLayout lay_out_constants(const npu::Program& program) {
  ConstantLayout layout;
  for (npu::BufferId id = 0; program.constant_align != 0 && id < program.buffers.size(); ++id) {
    const npu::Buffer& buffer = program.buffers[id];
    if (buffer.role != npu::BufferRole::constant || !buffer.relocations.empty() || buffer.contents.empty()) continue;
    layout.buffers.push_back(id);
    layout.offsets.push_back(align_up(layout.size_bytes, uint64_t{program.constant_align}));
    layout.size_bytes = layout.offsets.back() + buffer.size_bytes;
  }
  return layout;
}

Result<std::shared_ptr<const ConstantBlock>> SharedConstants::take(kernels::Device& device, const npu::Program& program,
                                                                   const ConstantLayout& layout) {
  const Key key = key_of(program, layout);
  if (const auto found = blocks_.find(key); found != blocks_.end()) {
    if (auto block = found->second.lock()) return block;
  }
  SK_TRY_ASSIGN(const kernels::Handle handle, device.alloc(layout.size_bytes));
  auto block = std::make_shared<ConstantBlock>(device, handle);
  SK_TRY_ASSIGN(const uint64_t address, device.address(handle));
  SK_TRY(fill(device, handle, program, layout));
  block->place_at(address);
  std::erase_if(blocks_, [](const auto& one) { return one.second.expired(); });
  blocks_[key] = block;
  return std::shared_ptr<const ConstantBlock>(block);
}

}  // namespace skillet::runtime
