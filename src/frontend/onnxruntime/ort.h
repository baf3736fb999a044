// Ort: calls the host's functions and converts their errors. GraphReader: reads the host's graph as a Model.
// Called by provider.cpp and factory.cpp. Must not know: chips, sessions.
#pragma once

#include <memory>
#include <string>

#include "base/caught.h"
#include "base/result.h"
#include "frontend/onnx/model.h"
#include "frontend/onnxruntime/ort_abi.h"

namespace skillet::onnxruntime {

using namespace onnx;  // types of models

class Ort {
 public:
  // Error: the host is too old.
  static Result<Ort> of(const OrtApiBase& base);

  uint32_t version() const { return version_; }

  // Calls a function of the host. The second form is for functions that may fail.
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

  OrtStatus* status(const Result<void>& done, int code = kEpFail) const;  // null: success
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

// Catches all exceptions: none may reach the host.
template <typename F>
OrtStatus* guarded(const Ort& ort, F&& f) {
  return ort.status(caught(f));
}

// `nodes[i]` is node i of the Model.
struct HostGraph {
  Model model;
  std::vector<const OrtNode*> nodes;
  bool reads_outside = false;  // reads values of an enclosing graph
};
// Constants are views of the host's memory.
Result<HostGraph> read_graph(const Ort& ort, const OrtGraph* graph);
// Names of a node's inputs or outputs.
Result<std::vector<std::string>> names_of(const Ort& ort, const OrtNode* node, bool outputs);

}  // namespace skillet::onnxruntime
