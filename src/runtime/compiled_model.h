// A compiled model as bytes, which the cache, `skillet compile -o` and hosts keep: the graph, and the programs that
// were compiled of it, for one chip or several. Where compiler or options are others, or the chip is none of these, it
// is compiled again. Called by the cache, the command, and plug-ins whose host stores what they compile. Must not know:
// hosts, devices.
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
  ir::Graph graph;      // without operations: the programs only, which nothing can run
  std::string note;     // what a front end adds
  std::string options;  // deciding_options() of who compiled it
  std::vector<StoredProgram> programs;
  // As it was read.
  bool is_of_this_build = true;
  uint32_t version = 0;
  std::string build;
  uint64_t checksum = 0;

  // "a311d, rk3588"
  std::string chips() const;
};

Result<Bytes> save_compiled(const CompiledModel& model);
// What it holds stays in `bytes`. Error: they are not ours, of a later version, cut off or damaged.
Result<CompiledModel> read_compiled(const SharedBytes& bytes);
// The same for who runs it. Error: it has no operations, too.
Result<CompiledModel> read_runnable(const SharedBytes& bytes);
// By its first bytes: so far nothing is known to be right.
bool is_compiled_model(std::span<const uint8_t> start);
Result<bool> is_compiled_model(const std::string& path);
// How many bytes it says that it has, 0: `start` is not one. So far nothing is known to be right.
uint64_t stated_bytes(std::span<const uint8_t> start);
// Before all of it is read. `start`: the first bytes, some 200, of `size_bytes`; `key`: of its first program.
Result<void> check_compiled_start(std::span<const uint8_t> start, uint64_t size_bytes, std::string_view key);

}  // namespace skillet::runtime
