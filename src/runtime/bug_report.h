// BugReport: one file with what somebody needs who was not there: versions, device, options, graph, streams.
// Called by Session when a part falls back and SKILLET_BUG_DIR is set, and by `skillet bug`.
// Must not know: how a person is told.
#pragma once

#include <string>
#include <vector>

#include "base/tar.h"
#include "runtime/session.h"

namespace skillet::runtime {

struct BugReport {
  std::string text;              // becomes report.txt, the first file
  std::vector<NamedFile> files;  // streams, graphs, models

  Bytes pack() const;
};

// Versions of Skillet's compiler, of the C library and of the kernel; the device and what it tells; the options.
std::string describe_environment(const Target& target, const SessionOptions& options);

// graph.txt and program.txt of one part, `name` in front; a null program has none.
void add_part(BugReport& report, const std::string& name, const ir::Graph& graph, const driver::Program* program);

// When SKILLET_BUG_DIR is set: a file there for a part that `cause` sent to the CPU, and a log line that names it. At
// most a few a process.
void report_fallback(const Target& target, const SessionOptions& options, const ir::Graph& part, const Error& cause);

}  // namespace skillet::runtime
