// SharedConstants: constants on a device, one buffer for all constants of a program, shared by all programs with equal
// ones. Called by LoadedProgram, which holds the mutex of the DeviceContext. Must not know: what the bytes mean.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/own_process.h"
#include "kernels/api/device.h"
#include "program/program.h"

namespace skillet::runtime {

// A device buffer that is no longer written; freed with its last owner.
class ConstantBlock {
 public:
  ConstantBlock(kernels::Device& device, kernels::Handle handle) : device_(device), handle_(handle) {}
  ~ConstantBlock();
  ConstantBlock(const ConstantBlock&) = delete;
  ConstantBlock& operator=(const ConstantBlock&) = delete;

  kernels::Handle handle() const { return handle_; }
  uint64_t address() const { return address_; }
  void place_at(uint64_t address) { address_ = address; }

 private:
  kernels::Device& device_;
  kernels::Handle handle_;
  uint64_t address_ = 0;
  OwnProcess process_;
};

// The constants that a program puts into a block: those that contain no addresses of other buffers.
struct ConstantLayout {
  std::vector<npu::BufferId> buffers;
  std::vector<uint64_t> offsets;  // of each buffer
  uint64_t size_bytes = 0;
};
ConstantLayout lay_out_constants(const npu::Program& program);

class SharedConstants {
 public:
  // Returns the block with these bytes; creates and fills it if there is none yet.
  Result<std::shared_ptr<const ConstantBlock>> take(kernels::Device& device, const npu::Program& program,
                                                    const ConstantLayout& layout);

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  std::map<Key, std::weak_ptr<const ConstantBlock>> blocks_;
};

}  // namespace skillet::runtime
