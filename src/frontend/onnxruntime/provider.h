// Provider: the execution provider of one session. It claims nodes, then runs them.
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
  OrtEp host;  // first: the host's pointer points to the whole struct
  std::shared_ptr<const Ort> ort;
  const OrtLogger* logger = nullptr;  // borrowed from the session
  host::Options options;
  runtime::Target target;  // without a driver: nothing is claimed
  bool saves_context = false;
  bool saves_beside = false;  // in files beside the model
  std::string context_path;   // path of the written model, or of a model without a file; empty: the host's default
  int saved_files = 0;
  uint64_t embedded_bytes = 0;                           // size of compiled parts in the written model
  bool reads_compiled = false;                           // the model has compiled parts already
  bool has_claimed = false, has_compiled = false;        // claimed or compiled anything, in any graph of the model
  std::mutex mutex;                                      // guards `pending`
  std::map<std::string, std::shared_ptr<Part>> pending;  // by the name of any output, until the host calls compile
};

// An error with strict=1, or if an NPU is required and there is none. Otherwise problems are logged.
Result<std::unique_ptr<Provider>> make_provider(std::shared_ptr<const Ort> ort, const OrtLogger* logger,
                                                const std::vector<host::KeyValue>& options,
                                                const std::map<std::string, std::string>& session);

}  // namespace skillet::onnxruntime
