// The compiler plug-in: chooses the operations of a host's graph for the NPU, divides them into parts, and compiles
// each part to bytes.
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

// The object behind the host's handle.
struct CompiledParts {
  std::vector<Bytes> bytes;        // by part
  std::vector<std::string> calls;  // names, by part
};

// A target, and the programs compiled for it.
struct Place {
  runtime::Target target;  // without a driver: nothing is claimed
  std::shared_ptr<runtime::ProgramStore> programs = std::make_shared<runtime::ProgramStore>();
};

struct Compiler {
  Table host;
  host::Options options;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Place>> places;  // by SoC model; "": the device of the options
};

Result<std::unique_ptr<Compiler>> make_compiler(const void* context);
// `soc` may be null: the device of the options.
Result<void> partition(Compiler& compiler, const char* soc, HostSubgraph* subgraph, HostOpList* list);
Result<std::unique_ptr<CompiledParts>> compile(Compiler& compiler, const char* soc, HostModel* model);

}  // namespace skillet::litert
