// BugReport: one file with what somebody needs who was not there: versions, device, options, graph, streams.
// Called by Session when a part falls back and SKILLET_BUG_DIR is set, and by `skillet bug`.
// Must not know: how a person gets to see it.
#pragma once

#include <span>
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

// Versions of Skillet, of its compiler, of the C library and of the kernel; the device and what it reports; the
// options.
std::string describe_environment(const Target& target, const SessionOptions& options);

// Files of one program, `name` in front: .graph.txt and .program.txt; `with_weights`: .program too, which tools read.
Result<void> add_part(BugReport& report, const std::string& name, const ir::Graph& graph, const npu::Program& program,
                      bool with_weights);

// When SKILLET_BUG_DIR is set: a file there for part `index` that `cause` sent to the CPU, and a log line that names
// it. `graphs`: what its programs were made of, one or a band each. At most a few a process.
void report_fallback(const Target& target, const SessionOptions& options, size_t index,
                     std::span<const ir::Graph> graphs, const Error& cause);

}  // namespace skillet::runtime
