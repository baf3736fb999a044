// CachingDriver: a driver that keeps programs of another driver in memory and in files of a folder.
// Called by compile_for(), if a folder or programs are given.
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

// Programs in memory: those of a compiled model, and those compiled since. Thread-safe.
class ProgramStore {
 public:
  ProgramStore() = default;
  explicit ProgramStore(std::vector<StoredProgram> given);

  // Number of the given programs that were used.
  size_t taken() const { return taken_; }
  // Number of programs given for that chip.
  size_t given_for(std::string_view chip) const;
  // The programs of `compiled`, in its order.
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

// A file is a compiled model without a graph. Its name is the hash of graph, constants, chip, options and the
// compiler's build id; the file contains that hash again. It is verified like any program file, addresses included, and
// must be a regular file of this user. Constants are used where the file was read to. If anything is wrong with a file
// or the folder, the program is compiled, and a warning gives the reason. Not detected: an attacker with write access
// as this user and a correct checksum may change weights, or what commands do within the program's own buffers, and so
// the results.
class CachingDriver : public npu::ForwardingDriver {
 public:
  // `inner` and `store` are borrowed. An empty folder or a null store is not used. `extra`: other inputs of the
  // compilation that the key must include.
  CachingDriver(const npu::Driver& inner, std::string folder, std::string extra = "", ProgramStore* store = nullptr)
      : ForwardingDriver(inner), folder_(std::move(folder)), extra_(std::move(extra)), store_(store) {}

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override;
  // Removes the stored program.
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

// Logs why a compiled model is compiled again or runs on the CPU.
void say_what_differs(const CompiledModel& model, const Target& target);
// After it was compiled with these options, if say_what_differs() logged nothing: "1 of 2 programs is not used, and
// compiled again: it was compiled with tuning=proven, not tuned"; empty: all are as stored.
std::string what_is_unused(const CompiledModel& model, const ProgramStore& programs, const Target& target,
                           const SessionOptions& options);

// 32 hexadecimal digits. `extra`: other inputs of the compilation.
std::string cache_key(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options,
                      std::string_view extra = "");
// The same for a graph and its constants alone, independent of the names of tensors.
std::string graph_key(const ir::Graph& graph);

}  // namespace skillet::runtime
