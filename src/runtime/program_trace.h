// ProgramTrace: what a trace shows of a program on an NPU. Measured: from its submission to its end. Between them jobs,
// operations and units share that time as the timing model has them, for no kernel says when a job of several began.
// Called by LoadedProgram, with the context's mutex held. Must not know: drivers, sessions.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "graph/ir/graph.h"
#include "program/program.h"

namespace skillet::runtime {

struct DeviceContext;
struct TimedTask;

class ProgramTrace {
 public:
  // Of a program whose buffers have their contents. Null: nothing is traced.
  static std::unique_ptr<ProgramTrace> of(const npu::Program& program, const ir::Graph& graph, DeviceContext& context);

  // Its jobs go to the device; they have ended; or they were lost, and nobody knows what the NPU did.
  void begin();
  void end(int64_t at_ns);
  void lose(int64_t at_ns) const;

 private:
  // A slice or a value of a counter, in us of the timing model since the first job began.
  struct Entry {
    trace::Track track = 0;
    trace::Name name = trace::kNoName;
    double begin_us = 0, us = 0;
    std::optional<double> value;  // none: a slice
  };
  void add_events(const std::vector<Entry>& entries);
  std::vector<Entry> entries_of(const npu::Program& program, const ir::Graph& graph, std::vector<TimedTask> tasks,
                                DeviceContext& context);
  void add_task(std::vector<Entry>& entries, const TimedTask& task, DeviceContext& context);

  trace::Track npu_ = 0;
  trace::Name all_ = trace::kNoName, lost_ = trace::kNoName;
  std::optional<trace::Pattern> pattern_;  // the first and the last of its events are of the whole
  std::vector<double> at_us_;              // when each is, as begin_us
  std::vector<int64_t> at_ns_;             // in this run
  double us_ = 0;                          // of all tasks; 0: not known
  int64_t begun_ns_ = 0;
};

}  // namespace skillet::runtime
