// Entry points of the shared library: a factory of providers, with their devices.
// Called by plugin_exports.cpp. Must not know: graphs.
#pragma once

#include "frontend/onnxruntime/ort_abi.h"

namespace skillet::onnxruntime {

// The contract of CreateEpFactories and ReleaseEpFactory of the host.
OrtStatus* create_factories(const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories, size_t most,
                            size_t* count);
void release_factory(OrtEpFactory* factory);

}  // namespace skillet::onnxruntime
