// Checks the results of a network: against the CPU kernels, against its default program, or against files (--compare,
// --expect).
// Called by run.cpp.
// Must not know: the command line, output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tools/run/results.h"
#include "tools/run/run_result.h"
#include "tools/tensors/run_inputs.h"

namespace skillet::tools {

// Runs a network on the CPU kernels alone, with a state of its own. `graph` is borrowed.
Result<Run> cpu_kernels(const ir::Graph& graph);

// The same network on the CPU kernels alone.
class Reference {
 public:
  // `graph` is borrowed.
  static Result<Reference> create(const ir::Graph& graph);
  // Fills the differences of `inference`; sets `run_ms`.
  Result<void> compare(const InputSet& inputs, const std::vector<Bytes>& outputs, Inference& inference, double& run_ms);

 private:
  Reference(const ir::Graph& graph, Run kernels, Run with_noise)
      : graph_(&graph), kernels_(std::move(kernels)), with_noise_(std::move(with_noise)) {}
  const ir::Graph* graph_;
  Run kernels_, with_noise_;
};

// The program that runs without comparison: intermediate tensors share memory, and operations may be joined. A session
// that keeps intermediates runs another program, whose outputs must be equal to this one's in every byte.
class DefaultProgram {
 public:
  static Result<DefaultProgram> create(ir::Graph graph, const runtime::Target& target, runtime::SessionOptions options);
  // Runs once. Error: the first output that differs from that of `kept`, or a part of this program that fell back to
  // the CPU. No comparison if a part of `kept` fell back.
  Result<void> check(const InputSet& inputs, const std::vector<Bytes>& outputs, const runtime::Session& kept);

 private:
  explicit DefaultProgram(std::unique_ptr<runtime::Session> session) : session_(std::move(session)) {}
  std::unique_ptr<runtime::Session> session_;
};

// An error for the first output or layer that differs from the CPU kernels by more than `tolerance`.
Result<void> check_tolerance(double tolerance, const Inference& inference, const ir::Graph& graph);

// Expected outputs from files.
struct Expectation {
  std::vector<std::vector<Bytes>> outputs;  // by inference, then output
  double tolerance = 0;

  static Result<Expectation> read(const std::string& path, const ir::Graph& graph,
                                  const std::vector<std::string>& inferences, double tolerance);
  // Error: each output that differs by more than the tolerance, with the number of elements and the worst one.
  Result<void> check(size_t inference, std::string_view name, const std::vector<Bytes>& got,
                     const ir::Graph& graph) const;
};

}  // namespace skillet::tools
