// An ONNX Runtime provider that takes the whole graph, with one input and one output of 1x10, and computes nothing, to
// time the host alone.
#include "frontend/onnxruntime/ort_abi.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using namespace skillet::onnxruntime;

Table table;
const char* name(const OrtEpFactory*) { return "NothingExecutionProvider"; }

template <typename F, typename... Args>
auto call_in(Table from, Slot<F> slot, Args... args) {
  return reinterpret_cast<F*>(const_cast<void*>(from[slot.place]))(args...);
}
template <typename F, typename... Args>
auto call(Slot<F> slot, Args... args) {
  return call_in(table, slot, args...);
}

OrtStatus* compute(OrtNodeComputeInfo*, void*, OrtKernelContext* context) {
  const OrtValue* input = nullptr;
  OrtValue* output = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  const int64_t dims[] = {1, 10};
  if (OrtStatus* failed = call(kContextInput, context, size_t{0}, &input)) return failed;
  if (OrtStatus* failed = call(kGetData, input, &from)) return failed;
  if (OrtStatus* failed = call(kContextOutput, context, size_t{0}, dims, size_t{2}, &output)) return failed;
  return call(kGetMutableData, output, &to);
}

OrtStatus* claim(OrtEp*, const OrtGraph* graph, OrtSupportInfo* info) {
  size_t count = 0;
  const OrtNode* nodes[1000];
  if (OrtStatus* failed = call(kGraphNumNodes, graph, &count)) return failed;
  if (count == 0) return nullptr;
  if (OrtStatus* failed = call(kGraphNodes, graph, nodes, count)) return failed;
  const OrtFusionOptions options{kOldestVersion, true};
  return call_in(call(kGetEpApi), kAddNodesToFuse, info, static_cast<const OrtNode* const*>(nodes), count, &options);
}

OrtStatus* compile(OrtEp*, const OrtGraph**, const OrtNode**, size_t count, OrtNodeComputeInfo** out, OrtNode**) {
  static OrtNodeComputeInfo info{.version = kOldestVersion,
                                 .create_state = [](OrtNodeComputeInfo*, void*, void** state) -> OrtStatus* {
                                   *state = nullptr;
                                   return nullptr;
                                 },
                                 .compute = compute,
                                 .release_state = [](OrtNodeComputeInfo*, void*) {}};
  for (size_t i = 0; i < count; ++i) out[i] = &info;
  return nullptr;
}

OrtStatus* none(OrtEpFactory*, void** out) {
  *out = nullptr;
  return nullptr;
}

}  // namespace

EXPORTED OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** out, size_t,
                                      size_t* count) {
  table = base->get_api(kOldestVersion);
  static OrtEp ep{};
  ep.version = kOldestVersion;
  ep.get_name = [](const OrtEp*) { return name(nullptr); };
  ep.get_capability = claim;
  ep.compile = compile;
  ep.release_compute_infos = [](OrtEp*, OrtNodeComputeInfo**, size_t) {};
  static OrtEpFactory factory{};
  factory.version = kOldestVersion;
  factory.get_name = factory.get_vendor = name;
  factory.get_vendor_id = [](const OrtEpFactory*) { return uint32_t{0}; };
  factory.get_version = [](const OrtEpFactory*) { return "1.0.0"; };
  factory.get_devices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t, OrtEpDevice** made,
                           size_t, size_t* number) -> OrtStatus* {
    *number = 1;
    return call_in(call(kGetEpApi), kCreateEpDevice, self, devices[0], static_cast<const OrtKeyValues*>(nullptr),
                   static_cast<const OrtKeyValues*>(nullptr), made);
  };
  factory.create_ep = [](OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValues* const*, size_t,
                         const OrtSessionOptions*, const OrtLogger*, OrtEp** made) -> OrtStatus* {
    *made = &ep;
    return nullptr;
  };
  factory.release_ep = [](OrtEpFactory*, OrtEp*) {};
  factory.create_allocator = [](OrtEpFactory* self, const void*, const OrtKeyValues*, void** made) {
    return none(self, made);
  };
  factory.release_allocator = [](OrtEpFactory*, void*) {};
  factory.create_data_transfer = none;
  factory.is_stream_aware = [](const OrtEpFactory*) { return false; };
  *out = &factory;
  *count = 1;
  return nullptr;
}

EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory*) { return nullptr; }
