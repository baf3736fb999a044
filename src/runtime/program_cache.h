// CachingDriver: a driver that keeps what another one compiles in files of a folder.
// Called by compile_for(), for code that names a folder.
// Must not know: devices.
#pragma once

#include <optional>
#include <string>

#include "npu/forwarding_driver.h"

namespace skillet::runtime {

// A file is named after the hash of graph, constants, chip, options and the compiler's build id, holds that hash again,
// and is verified as any program file is, its addresses too; it must be a regular file of this user. Constants stay
// where the file was read to. Whatever is wrong with a file or the folder: the program is compiled, and a warning says
// why. What that does not detect: a program that writes into the folder as its user and makes the checksum right may
// change weights, or what commands do within the program's own buffers, and the results are others.
class CachingDriver : public npu::ForwardingDriver {
 public:
  // `inner` is borrowed. `extra`: what else decides about what it compiles.
  CachingDriver(const npu::Driver& inner, std::string folder, std::string extra = "")
      : ForwardingDriver(inner), folder_(std::move(folder)), extra_(std::move(extra)) {}

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override;
  // Removes what is kept of it.
  void forget(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options) const;

 private:
  std::string path_of(const std::string& key) const;
  std::optional<npu::Program> load(const npu::Chip& chip, const ir::Graph& graph, const std::string& path,
                                   const std::string& key) const;

  std::string folder_, extra_;
};

// 32 hexadecimal digits. `extra`: what else decides about the program.
std::string cache_key(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options,
                      std::string_view extra = "");
// The same of a graph and its constants alone, whatever its tensors are called.
std::string graph_key(const ir::Graph& graph);

}  // namespace skillet::runtime
