// A compiled model as bytes, which the cache, `skillet compile -o` and host programs keep: the graph, and its programs
// for one chip or several. It is compiled again if compiler or options differ, or if it has no program for the chip.
// Called by the cache, the command, and plug-ins whose host stores compiled models. Must not know: hosts, devices.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::runtime {

inline constexpr std::string_view kCompiledMark = "SKILMODL";  // its first bytes

struct StoredProgram {
  std::string key;   // runtime::cache_key()
  std::string chip;  // name
  SharedBytes file;  // npu::serialise(); at a multiple of 64 bytes

  bool operator==(const StoredProgram&) const = default;
};

struct CompiledModel {
  ir::Graph graph;        // without operations: only the programs are stored, and the model cannot run
  std::string note;       // what a front end, or the cache, adds
  SharedBytes constants;  // without operations: what the note refers to
  std::string options;    // deciding_options() when it was compiled
  std::vector<StoredProgram> programs;
  // As read from the file.
  bool is_of_this_build = true;
  uint32_t version = 0;
  std::string build;
  uint64_t checksum = 0;

  // "a311d, rk3588"
  std::string chips() const;
};

Result<Bytes> save_compiled(const CompiledModel& model);
// Tensors and programs refer to `bytes`. Error: not our format, a later version, cut off or damaged.
Result<CompiledModel> read_compiled(const SharedBytes& bytes);
// The same, for code that runs the model: also an error if it has no operations.
Result<CompiledModel> read_runnable(const SharedBytes& bytes);
// Checks the first bytes only; the rest may still be wrong.
bool is_compiled_model(std::span<const uint8_t> start);
Result<bool> is_compiled_model(const std::string& path);
// The size in its header, which is not yet verified; 0: `start` is no compiled model.
uint64_t stated_bytes(std::span<const uint8_t> start);
// Checks the header before the rest is read. `start`: the first bytes, about 200, of `size_bytes`.
Result<void> check_compiled_start(std::span<const uint8_t> start, uint64_t size_bytes);

}  // namespace skillet::runtime
