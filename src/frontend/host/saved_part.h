// A part of a host's graph as bytes that the host keeps: the part itself, and the programs that were compiled of it,
// for one chip. Where chip, compiler or options are others, it is compiled again. Called by the plug-ins whose host
// stores what they compile. Must not know: hosts, devices.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compile/compile.h"
#include "npu/forwarding_driver.h"
#include "runtime/device_context.h"

namespace skillet::host {

struct SavedPart {
  std::string chip;
  bool is_of_this_build = false;
  ir::Graph graph;
  std::map<std::string, SharedBytes> programs;  // program files by runtime::cache_key()
};

Result<Bytes> save_part(const std::string& chip, const ir::Graph& graph,
                        const std::map<std::string, SharedBytes>& programs);
// What it holds stays in `bytes`. Error: they are not ours, of a later version, cut off or damaged.
Result<SavedPart> read_part(const SharedBytes& bytes);

// A driver that keeps what another one compiles, and compiles nothing that it was given.
class KeepingDriver : public npu::ForwardingDriver {
 public:
  explicit KeepingDriver(const npu::Driver& inner) : ForwardingDriver(inner) {}

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override;
  size_t taken() const { return taken_; }  // how many programs it was given and gave
  void give(std::map<std::string, SharedBytes> programs) { given_ = std::move(programs); }
  // Those that are in `compiled`.
  Result<std::map<std::string, SharedBytes>> kept(compile::Compiled& compiled) const;

 private:
  struct Kept {
    std::string graph;  // runtime::graph_key()
    npu::Program program;
  };
  std::map<std::string, SharedBytes> given_;
  mutable std::atomic<size_t> taken_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Kept> kept_;
};

}  // namespace skillet::host
