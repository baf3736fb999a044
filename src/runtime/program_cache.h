// CachingDriver: a driver that keeps what another one compiles, in memory and in files of a folder.
// Called by compile_for(), for code that names a folder or programs.
// Must not know: devices.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "npu/forwarding_driver.h"
#include "runtime/compiled_model.h"
#include "runtime/device_context.h"

namespace skillet::runtime {

struct SessionOptions;

// Programs in memory: those of a compiled model, and what was compiled since. Any number of threads.
class ProgramStore {
 public:
  ProgramStore() = default;
  explicit ProgramStore(std::vector<StoredProgram> given);

  // How many of the programs that it was given were of use.
  size_t taken() const { return taken_; }
  // How many it was given for that chip.
  size_t given_for(std::string_view chip) const;
  // Those that are in `compiled`, in its order.
  Result<std::vector<StoredProgram>> programs_of(compile::Compiled& compiled) const;

 private:
  friend class CachingDriver;
  struct Kept {
    std::string graph;  // exact_key()
    npu::Program program;
  };
  std::map<std::string, StoredProgram> given_;  // by key
  mutable std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  std::atomic<size_t> taken_ = 0;
};

// A file is a compiled model without a graph. It is named after the hash of graph, constants, chip, options and the
// compiler's build id, holds that hash again, and is verified as any program file is, its addresses too; it must be a
// regular file of this user. Constants stay where the file was read to. Whatever is wrong with a file or the folder:
// the program is compiled, and a warning says why. What that does not detect: a program that writes into the folder as
// its user and makes the checksum right may change weights, or what commands do within the program's own buffers, and
// the results are others.
class CachingDriver : public npu::ForwardingDriver {
 public:
  // `inner` and `store` are borrowed. An empty folder, no store: nothing is kept there. `extra`: what else decides
  // about what it compiles.
  CachingDriver(const npu::Driver& inner, std::string folder, std::string extra = "", ProgramStore* store = nullptr)
      : ForwardingDriver(inner), folder_(std::move(folder)), extra_(std::move(extra)), store_(store) {}

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override;
  // Removes what is kept of it.
  void forget(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options) const;

 private:
  std::string path_of(const std::string& key) const;
  Result<npu::Program> check(const npu::Chip& chip, const ir::Graph& graph, const SharedBytes& file) const;
  std::optional<npu::Program> from_store(const npu::Chip& chip, const ir::Graph& graph, const std::string& key) const;
  std::optional<npu::Program> load(const npu::Chip& chip, const ir::Graph& graph, const std::string& path,
                                   const std::string& key) const;
  Result<npu::Program> from_folder(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options,
                                   const std::string& key) const;

  std::string folder_, extra_;
  ProgramStore* store_;
};

// Of a compiled model, where it is compiled again, or runs on the CPU: why.
void say_what_differs(const CompiledModel& model, const Target& target);
// After it was compiled with these options, where say_what_differs() had nothing to say: "1 of 2 programs is not used,
// and compiled again: it was compiled with tuning=proven, not tuned"; empty: all are as stored.
std::string what_is_unused(const CompiledModel& model, const ProgramStore& programs, const Target& target,
                           const SessionOptions& options);

// 32 hexadecimal digits. `extra`: what else decides about the program.
std::string cache_key(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options,
                      std::string_view extra = "");
// The same of a graph and its constants alone, whatever its tensors are called.
std::string graph_key(const ir::Graph& graph);

}  // namespace skillet::runtime
