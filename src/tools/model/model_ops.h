// Finds the operation of a model for each recorded job: compiles the model for the chip, and aligns jobs of the same
// kind and shape in order.
// Called by `skillet decode` and `check`.
// Must not know: anything of a vendor.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::tools {

// The operation of the compiled graph for each operation that the device executes, in order; -1: added by the compiler.
std::vector<ir::OpId> executed_ops(const npu::Program& program, const npu::HardwareRows& rows);

class ModelOps {
 public:
  // A model without operations on the NPU has no such jobs.
  static Result<ModelOps> load(const std::string& path, const npu::Chip& chip);

  // "3 CONV_2D" for each operation of the submission; empty: added by the compiler, or not recognised. Call with
  // submissions in order; after the model's last operation its first one follows again.
  std::vector<std::string> of(const npu::Annotated& decoded);
  // Number of operations recognised in all calls.
  size_t found() const { return found_; }

 private:
  // The operations of the model as compiled with one tuning.
  struct Sequence {
    std::vector<std::string> keys, ops;
    size_t next = 0;
  };
  static Result<Sequence> sequence(const ir::Graph& graph, const npu::Chip& chip, npu::Tuning tuning);

  std::vector<Sequence> sequences_;
  size_t found_ = 0;
};

}  // namespace skillet::tools
