// The compiler plug-in: what of a host's graph goes to the NPU, in which parts, and the bytes of each part.
// Called by compiler_exports.cpp. Must not know: how parts run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/host/options.h"
#include "frontend/litert/litert_abi.h"
#include "runtime/program_cache.h"

namespace skillet::litert {

// Behind the host's handle.
struct CompiledParts {
  std::vector<Bytes> bytes;        // by part
  std::vector<std::string> calls;  // names, likewise
};

// What is compiled for, and what was compiled for it.
struct Place {
  runtime::Target target;  // without a driver: nothing is claimed
  std::shared_ptr<runtime::ProgramStore> programs = std::make_shared<runtime::ProgramStore>();
};

struct Compiler {
  Table host;
  host::Options options;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Place>> places;  // by the model of SoC; "": the device of the options
};

Result<std::unique_ptr<Compiler>> make_compiler(const void* context);
// `soc` may be null: for the device of the options.
Result<void> partition(Compiler& compiler, const char* soc, HostSubgraph* subgraph, HostOpList* list);
Result<std::unique_ptr<CompiledParts>> compile(Compiler& compiler, const char* soc, HostModel* model);

}  // namespace skillet::litert
