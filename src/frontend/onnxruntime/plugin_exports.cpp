// The two functions that the shared library exports (onnxruntime_ep_c_api.h of ONNX Runtime).
#include <atomic>

#include "base/leaked.h"
#include "frontend/onnxruntime/factory.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constinit std::atomic<int> g_factories{0};

// Unloading the library frees its leaked tables, unless sessions still exist at process exit: their threads go on.
__attribute__((destructor)) void return_tables() {
  if (g_factories == 0) skillet::destroy_leaked();
}

}  // namespace

EXPORTED skillet::onnxruntime::OrtStatus* CreateEpFactories(const char* /*registration_name*/,
                                                            const skillet::onnxruntime::OrtApiBase* base,
                                                            const skillet::onnxruntime::OrtLogger* logger,
                                                            skillet::onnxruntime::OrtEpFactory** factories, size_t most,
                                                            size_t* count) {
  skillet::onnxruntime::OrtStatus* const failed =
      skillet::onnxruntime::create_factories(base, logger, factories, most, count);
  if (failed == nullptr) ++g_factories;
  return failed;
}

EXPORTED skillet::onnxruntime::OrtStatus* ReleaseEpFactory(skillet::onnxruntime::OrtEpFactory* factory) {
  skillet::onnxruntime::release_factory(factory);
  --g_factories;
  return nullptr;
}
