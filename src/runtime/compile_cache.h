// CompileCache: what compile_for() made, in files of a folder. A hit needs no pass and no question to the driver.
// Called by compile_for().
// Must not know: what decides about a compilation; devices.
#pragma once

#include <optional>
#include <string>

#include "compile/compile.h"

namespace skillet::runtime {

// A file is a compiled model without a graph: the result of the compilation is its note. Its name is the hash of the
// model's graph, constants, chip, options and the build id; the file contains that hash again. Its programs are
// verified like those of any program file, addresses included. It must be a regular file of this user. Constants are
// used where the file was read to. If anything is wrong with a file or the folder, the model is compiled, and a warning
// gives the reason. Not detected: an attacker with write access as this user and a correct checksum may change weights,
// or what commands do within a program's own buffers, and so the results.
class CompileCache {
 public:
  // `key`: cache_key() of all that the result depends on. Both `driver` and `chip` are borrowed.
  CompileCache(const std::string& folder, std::string key, const npu::Driver& driver, const npu::Chip& chip);

  std::optional<compile::Compiled> load(const ir::Graph& model) const;
  // Sets the result's `kept_in`, and the keys of its parts.
  void save(compile::Compiled& compiled, const ir::Graph& model) const;

 private:
  Result<compile::Compiled> read(const SharedBytes& file, const ir::Graph& model) const;
  Result<Bytes> file_of(compile::Compiled& compiled, const ir::Graph& model) const;

  std::string folder_, key_, path_;
  const npu::Driver& driver_;
  const npu::Chip& chip_;
};

}  // namespace skillet::runtime
