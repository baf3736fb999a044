// StoringDriver: a driver that keeps programs of another driver in memory. Keys of graphs, programs and options.
// Called by compile_for(), if programs are given; the keys by code that keeps what it found out.
// Must not know: devices, files.
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
  friend class StoringDriver;
  struct Kept {
    std::string graph;  // exact_key()
    npu::Program program;
  };
  std::map<std::string, StoredProgram> given_;  // by key
  mutable std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  std::atomic<size_t> taken_ = 0;
};

class StoringDriver : public npu::ForwardingDriver {
 public:
  // `inner` and `store` are borrowed. `extra`: other inputs of the compilation that the key must include.
  StoringDriver(const npu::Driver& inner, std::string extra, ProgramStore& store)
      : ForwardingDriver(inner), extra_(std::move(extra)), store_(store) {}

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override;

 private:
  std::optional<npu::Program> from_store(const npu::Chip& chip, const ir::Graph& graph, const std::string& key) const;

  std::string extra_;
  ProgramStore& store_;
};

// A program of a compiled model that was read, with all checks that loading it makes.
Result<npu::Program> check_stored(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                                  const SharedBytes& file);

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
// Of a part and all its programs. Empty: they cannot be serialised.
std::string program_key(compile::Part& part);

}  // namespace skillet::runtime
