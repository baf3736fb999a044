// Provider: one session's execution provider: asked what it takes, then run.
// Called by factory.cpp (made, released) and by the host. Must not know: how devices are listed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/host/options.h"
#include "frontend/onnx/capability.h"
#include "frontend/onnxruntime/context.h"

namespace skillet::onnxruntime {

struct Provider {
  OrtEp host;  // first: the host's pointer is ours
  std::shared_ptr<const Ort> ort;
  const OrtLogger* logger = nullptr;  // borrowed from the session
  host::Options options;
  runtime::Target target;  // without a driver: nothing is claimed
  bool saves_context = false;
  bool saves_beside = false;  // in files beside the model
  std::string context_path;   // of the model that is written, or that has no file; empty: as the host names it
  int saved_files = 0;
  uint64_t embedded_bytes = 0;                           // of compiled parts in the model that is written
  bool reads_compiled = false;                           // the model has compiled parts already
  bool has_claimed = false, has_compiled = false;        // anything, in any graph of the model
  std::mutex mutex;                                      // of `pending`
  std::map<std::string, std::shared_ptr<Part>> pending;  // by the name of any output, until the host compiles
};

// With strict=1, or where an NPU must be there and is not, an error; else what is wrong is logged.
Result<std::unique_ptr<Provider>> make_provider(std::shared_ptr<const Ort> ort, const OrtLogger* logger,
                                                const std::vector<host::KeyValue>& options,
                                                const std::map<std::string, std::string>& session);

}  // namespace skillet::onnxruntime
