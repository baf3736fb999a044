// Ort: the host's functions, with errors as ours are. GraphReader: the host's graph as a Model.
// Called by provider.cpp and factory.cpp. Must not know: chips, sessions.
#pragma once

#include <memory>
#include <string>

#include "base/caught.h"
#include "base/result.h"
#include "frontend/onnx/model.h"
#include "frontend/onnxruntime/ort_abi.h"

namespace skillet::onnxruntime {

using namespace onnx;  // what models say

class Ort {
 public:
  // Error: the host is older than we can work with.
  static Result<Ort> of(const OrtApiBase& base);

  uint32_t version() const { return version_; }

  // A function of the host's; the second form: one that may fail.
  template <typename R, typename... Args, typename... Given>
  R call(Slot<R(Args...)> slot, Given... given) const {
    return of(api_, slot)(given...);
  }
  template <typename... Args, typename... Given>
  Result<void> attempt(Slot<OrtStatus*(Args...)> slot, Given... given) const {
    return checked(call(slot, given...));
  }
  template <typename... Args, typename... Given>
  Result<void> attempt_ep(Slot<OrtStatus*(Args...)> slot, Given... given) const {
    return checked(of(ep_api_, slot)(given...));
  }
  template <typename... Args, typename... Given>
  Result<void> attempt_editor(Slot<OrtStatus*(Args...)> slot, Given... given) const {
    return checked(of(call(kGetModelEditorApi), slot)(given...));
  }

  OrtStatus* status(const Result<void>& done, int code = kEpFail) const;  // null: it went well
  void log(const OrtLogger* logger, int level, const std::string& text) const;

 private:
  template <typename R, typename... Args>
  static auto of(Table table, Slot<R(Args...)> slot) {
    return reinterpret_cast<R (*)(Args...)>(const_cast<void*>(table[slot.place]));
  }
  Result<void> checked(OrtStatus* status) const;
  uint32_t version_ = 0;
  Table api_ = nullptr, ep_api_ = nullptr;
};

// Nothing may be thrown into the host.
template <typename F>
OrtStatus* guarded(const Ort& ort, F&& f) {
  return ort.status(caught(f));
}

// Nodes of the Model are at the same places in `nodes`.
struct HostGraph {
  Model model;
  std::vector<const OrtNode*> nodes;
  bool reads_outside = false;  // values of a graph around it
};
// Constants are views of the host's memory.
Result<HostGraph> read_graph(const Ort& ort, const OrtGraph* graph);
// Names of a graph's inputs, of its outputs.
Result<std::vector<std::string>> names_of(const Ort& ort, const OrtNode* node, bool outputs);

}  // namespace skillet::onnxruntime
