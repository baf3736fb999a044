// BandGroup: the bands of one part, each loaded on a device file of its own, that run at the same time.
// Called by Session.
// Must not know: drivers, the CPU kernels, why the part is divided.
#pragma once

#include <memory>
#include <vector>

#include "compile/compile.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {

class BandGroup {
 public:
  // `contexts`: of one chip, at least one. Bands share them if there are fewer contexts than bands.
  static Result<std::unique_ptr<BandGroup>> load(const std::vector<std::shared_ptr<DeviceContext>>& contexts,
                                                 std::vector<compile::Band> bands, std::chrono::nanoseconds timeout);
  BandGroup(const BandGroup&) = delete;
  BandGroup& operator=(const BandGroup&) = delete;

  // Runs one inference of all bands; `bytes_of` returns the part's tensors. Waits for its turn on each file. After an
  // error no band is running.
  Result<void> run(const HostBytes& bytes_of);
  std::vector<const npu::Program*> programs() const;
  uint64_t copied_bytes() const;

 private:
  struct Member {
    passes::Band band;
    std::unique_ptr<LoadedProgram> loaded;
    std::vector<Bytes> whole;  // by output: the tensor with other bands' rows; empty: all rows are this band's
  };
  BandGroup() = default;
  std::span<uint8_t> bytes_of_band(Member& member, ir::TensorId id, const HostBytes& bytes_of);
  void give(Member& member, const HostBytes& bytes_of);

  std::vector<std::shared_ptr<DeviceContext>> contexts_;  // each once, in the order in which all code locks them
  std::vector<Member> members_;
};

}  // namespace skillet::runtime
