// BugReport: one file with what is needed to study a failure elsewhere: versions, device, options, graph, streams.
// Called by Session when a part falls back and SKILLET_BUG_DIR is set, and by `skillet bug`.
// Must not know: how the report reaches its readers.
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

// Lists the versions of Skillet, its compiler, the C library and the kernel; the device and its facts; the options.
std::string describe_environment(const Target& target, const SessionOptions& options);

// Adds the files of one program, prefixed with `name`: .graph.txt, .program.txt and, `with_weights`, .program (for
// tools).
Result<void> add_part(BugReport& report, const std::string& name, const ir::Graph& graph, const npu::Program& program,
                      bool with_weights);

// If SKILLET_BUG_DIR is set: writes a file there for part `index`, which `cause` moved to the CPU, and logs its name.
// `graphs`: the sources of the part's programs, one, or one for each band. Writes a limited number of files per
// process.
void report_fallback(const Target& target, const SessionOptions& options, size_t index,
                     std::span<const ir::Graph> graphs, const Error& cause);

}  // namespace skillet::runtime
