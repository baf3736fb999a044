// --partition and --host-threads: which parts of a model go to the NPU, as sessions take it.
// Called by the verbs that compile models.
// Must not know: what is done with the session.
#pragma once

#include <string>

#include "runtime/session.h"
#include "tools/command_line.h"

namespace skillet::tools {

struct PartitionFlags {
  std::string partition, host_threads;  // empty: not given
};

void add_partition(const Verb& verb, PartitionFlags& flags);

// What add_partition() took is right; what was not given stays as it is.
void set_partition(const PartitionFlags& flags, runtime::SessionOptions& session);

}  // namespace skillet::tools
