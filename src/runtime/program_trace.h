// ProgramTrace: what a trace shows of a program on an NPU. The time from its submission to its end is measured. Jobs,
// operations and units divide that time in proportion to the timing model, because no kernel reports when one of
// several jobs began. Called by LoadedProgram, with the context's mutex held. Must not know: drivers, sessions.
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
  // For a program whose buffers have their contents. Null: no trace is on.
  static std::unique_ptr<ProgramTrace> of(const npu::Program& program, const ir::Graph& graph, DeviceContext& context);

  // Call when its jobs are submitted; when they have ended; when they were lost, and the NPU's work is unknown.
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
  std::optional<trace::Pattern> pattern_;  // its first and its last event stand for the whole run
  std::vector<double> at_us_;              // time of each event, as begin_us
  std::vector<int64_t> at_ns_;             // time of each event in this run
  double us_ = 0;                          // total of all tasks; 0: not known
  int64_t begun_ns_ = 0;
};

}  // namespace skillet::runtime
