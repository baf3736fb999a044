// TunedDriver: a driver that compiles with the best choices: those of a tuning file, else those with the lowest cost.
// Called by compile_for().
// Must not know: devices, anything of one vendor.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "compile/tune.h"
#include "compile/tuning_file.h"
#include "npu/forwarding_driver.h"
#include "runtime/device_context.h"

namespace skillet::runtime {

class TunedDriver : public npu::ForwardingDriver {
 public:
  // `inner` and `file` are borrowed; null: no file. Without costs, choices that no file makes keep their defaults.
  TunedDriver(const npu::Driver& inner, std::optional<compile::ProgramCosts> program_costs,
              const compile::TuningFile* file)
      : ForwardingDriver(inner), program_costs_(std::move(program_costs)), file_(file) {}

  // Choices in the options take precedence. Error invalid_argument: the file makes a choice that does not exist.
  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override;

 private:
  Result<npu::CompileOptions> from_file(const npu::Chip& chip, const ir::Graph& graph, npu::CompileOptions options,
                                        const compile::TunedPart& part) const;

  std::optional<compile::ProgramCosts> program_costs_;
  const compile::TuningFile* file_;
};

// The file at `path`, for this chip and build. Error names the file, and the field that is wrong.
Result<compile::TuningFile> load_tuning_file(const std::string& path, const npu::Chip& chip);
// For several chips: loads the file for the chip that it names, with a warning; an error if it names none of them. No
// path: null.
Result<std::shared_ptr<const compile::TuningFile>> tuning_file_for(const std::string& path,
                                                                   std::span<const npu::Chip> chips);
// The same check before a graph is known. No path: succeeds. No NPU: the file may be for any chip.
Result<void> check_tuning_file(const Target& target, const std::string& path);

}  // namespace skillet::runtime
