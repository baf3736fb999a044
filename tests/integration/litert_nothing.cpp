// A dispatch library for LiteRT up to 2.3 that computes nothing, to time the host alone (litert_test.py).
#include <cstdlib>

#include "frontend/litert/litert_abi.h"

namespace skillet::litert {
struct Device {};
struct Invocation {};
}  // namespace skillet::litert

using namespace skillet::litert;  // NOLINT

namespace {

Table g_host;

// An environment variable contains the size of the tensors.
Status requirements(const char* name, HostRequirements** out) {
  const int type = kHostMemory;
  return g_host.call(kCreateRequirements, 1, &type, static_cast<size_t>(std::atol(std::getenv(name))), 0, nullptr, out);
}

const DispatchTable kTable{
    .initialize =
        [](const void* context, HostEnvironment*, HostOptions*) {
          g_host = Table(context);
          return kOk;
        },
    .vendor =
        [](const char** out) {
          *out = "Nothing";
          return kOk;
        },
    .build =
        [](const char** out) {
          *out = "0";
          return kOk;
        },
    .capabilities =
        [](int* out) {
          *out = kBasicCapability;
          return kOk;
        },
    .create_device =
        [](const void*, HostOptions*, Device** out) {
          *out = new Device;
          return kOk;
        },
    .destroy_device = [](Device*) { return kOk; },
    .input_requirements = [](Invocation*, int, const RankedType*,
                             HostRequirements** out) { return requirements("INPUT_BYTES", out); },
    .output_requirements = [](Invocation*, int, const RankedType*,
                              HostRequirements** out) { return requirements("OUTPUT_BYTES", out); },
    .register_buffer = [](Device*, HostBuffer*, uint64_t*) { return kOk; },
    .unregister_buffer = [](Device*, uint64_t) { return kOk; },
    .create_invocation =
        [](const void*, Device*, int, const MemBuffer*, const char*, int, int, Invocation** out) {
          *out = new Invocation;
          return kOk;
        },
    .destroy_invocation = [](Invocation*) { return kOk; },
    .set_scheduling = [](Invocation*, const void*) { return kOk; },
    .attach_input = [](Invocation*, int, uint64_t) { return kOk; },
    .attach_output = [](Invocation*, int, uint64_t) { return kOk; },
    .detach_input = [](Invocation*, int, uint64_t) { return kOk; },
    .detach_output = [](Invocation*, int, uint64_t) { return kOk; },
    .invoke = [](Invocation*) { return kOk; },
    .start_metrics = [](Invocation*, int) { return kUnsupported; },
    .stop_metrics = [](Invocation*, void**) { return kUnsupported; },
    .num_metrics = [](void*, int*) { return kUnsupported; },
    .metric = [](void*, int, void*) { return kUnsupported; },
    .destroy_metrics = [](void*) { return kUnsupported; },
    .compatibility = [](Version, HostEnvironment*, HostOptions*) { return kOk; },
    .set_options = [](Invocation*, HostOptions*) { return kOk; },
    .hooks = nullptr,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Status LiteRtDispatchGetApi(DispatchApi* out) {
  *out = {{sizeof *out, kMajor, 0, 0}, kVersion, &kTable, nullptr, nullptr, nullptr};
  return kOk;
}
