// Which operation of a model each recorded job belongs to: the model is compiled for the chip, and jobs of the same
// kind and shape are taken for the same, in their order.
// Called by `skillet decode` and `check`.
// Must not know: a vendor's anything.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::tools {

// The operation of the compiled graph for each of the things that the device executes, in order; -1: the compiler's
// own.
std::vector<ir::OpId> executed_ops(const npu::Program& program, const npu::HardwareRows& rows);

class ModelOps {
 public:
  // A model of which the NPU takes nothing has no such job.
  static Result<ModelOps> load(const std::string& path, const npu::Chip& chip);

  // "3 CONV_2D" for each operation of the submission; empty: the compiler's own, or not recognised. Submissions come in
  // order; after the model's last operation comes its first one again.
  std::vector<std::string> of(const npu::Annotated& decoded);
  // Of all that was asked for.
  size_t found() const { return found_; }

 private:
  // What one tuning of the compiler makes of the model.
  struct Sequence {
    std::vector<std::string> keys, ops;
    size_t next = 0;
  };
  static Result<Sequence> sequence(const ir::Graph& graph, const npu::Chip& chip, npu::Tuning tuning);

  std::vector<Sequence> sequences_;
  size_t found_ = 0;
};

}  // namespace skillet::tools
