// CachingDriver: a driver that keeps what another one compiles in files of a folder.
// Called by compile_for(), for whoever names a folder.
// Must not know: devices.
#pragma once

#include <optional>
#include <string>

#include "driver/driver.h"

namespace skillet::runtime {

// A file is named after the hash of graph, constants, chip, options and the compiler's build id, holds that hash again,
// and is verified as any program file is, its addresses too; it must be a regular file of this user. Constants stay in
// the mapped file. Whatever is wrong with a file or the folder: the program is compiled, and a warning says why.
class CachingDriver : public driver::Driver {
 public:
  // `inner` is borrowed (drivers live as long as the library).
  CachingDriver(const driver::Driver& inner, std::string folder) : inner_(inner), folder_(std::move(folder)) {}

  std::string_view name() const override { return inner_.name(); }
  std::span<const driver::Chip> chips() const override { return inner_.chips(); }
  Result<driver::Chip> identify(const capture::DeviceInfo& info) const override { return inner_.identify(info); }
  driver::Support supports(const driver::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.supports(chip, graph, op);
  }
  Result<driver::Program> compile(const driver::Chip& chip, const ir::Graph& graph,
                                  const driver::CompileOptions& options) const override;
  Result<driver::Annotated> decode(const driver::Chip& chip, const capture::Submission& submission) const override {
    return inner_.decode(chip, submission);
  }

 private:
  std::optional<driver::Program> load(const driver::Chip& chip, const std::string& path, const std::string& key) const;

  const driver::Driver& inner_;
  std::string folder_;
};

// 32 hexadecimal digits.
std::string cache_key(const driver::Chip& chip, const ir::Graph& graph, const driver::CompileOptions& options);

}  // namespace skillet::runtime
