// Exports of the dispatch library: one function for hosts up to 2.3, another one for later ones.
#include "base/leaked.h"
#include "compile/build_id.h"
#include "frontend/litert/dispatch.h"
#include "frontend/litert/guarded.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace skillet::litert;  // NOLINT: the exports are outside

namespace {

using Ports = std::vector<Invocation::Port>;

Status initialize(const void* context, HostEnvironment*, HostOptions*) {
  return Table(context).is_known() ? kOk : refused(kTooOld);
}

Status create_device(const void* context, HostOptions*, Device** out) {
  if (!Table(context).is_known()) return refused(kTooOld);
  return guarded(kFailed, [&]() -> skillet::Result<void> {
    SK_TRY_ASSIGN(auto made, make_device(context));
    *out = made.release();
    return {};
  });
}

Status create_invocation(const void*, Device* device, int, const MemBuffer* memory, const char* name, int num_inputs,
                         int num_outputs, Invocation** out) {
  bool is_wrong = false;
  const Status status = guarded(kFailed, [&]() -> skillet::Result<void> {
    SK_TRY_ASSIGN(auto made,
                  make_invocation(*device, *memory, name == nullptr ? "" : name, num_inputs, num_outputs, is_wrong));
    *out = made.release();
    return {};
  });
  return is_wrong ? kWrongBytes : status;
}

Status requirements(const Invocation& invocation, bool is_input, int index, const RankedType* asked,
                    HostRequirements** out) {
  const Ports& ports = is_input ? invocation.inputs : invocation.outputs;
  if (index < 0 || static_cast<size_t>(index) >= ports.size()) return kInvalid;
  const Status fits =
      guarded(kUnsupported, [&] { return check_type(invocation, is_input, static_cast<size_t>(index), asked); });
  if (fits != kOk) return fits;
  const int type = kHostMemory;
  const auto bytes = static_cast<size_t>(ports[static_cast<size_t>(index)].bytes);
  return invocation.device->host.call(kCreateRequirements, 1, &type, bytes, 0, nullptr, out);
}

Status register_buffer(Device* device, HostBuffer* buffer, uint64_t* out) {
  int type = 0;
  if (device->host.call(kBufferType, buffer, &type) != kOk || type != kHostMemory) return kUnsupported;
  *out = reinterpret_cast<uint64_t>(buffer);
  return kOk;
}

Status attach_to(Invocation& invocation, Ports& ports, int index, uint64_t handle) {
  if (index < 0 || static_cast<size_t>(index) >= ports.size()) return kInvalid;
  return guarded(kInvalid, [&] {
    const std::lock_guard lock(invocation.mutex);
    return attach(*invocation.device, ports[static_cast<size_t>(index)], reinterpret_cast<HostBuffer*>(handle));
  });
}

Status detach_from(Invocation& invocation, Ports& ports, int index) {
  if (index < 0 || static_cast<size_t>(index) >= ports.size()) return kInvalid;
  const std::lock_guard lock(invocation.mutex);
  ports[static_cast<size_t>(index)].buffer = nullptr;
  return kOk;
}

template <typename T>
Status give(T* out, T value) {
  if (out == nullptr) return kInvalid;
  *out = value;
  return kOk;
}

const char* build() {
  const std::string& text =
      skillet::leaked([] { return "Skillet " SKILLET_VERSION ", build " + std::string(skillet::compile::build_id()); });
  return text.c_str();
}

constexpr DispatchTable kTable{
    .initialize = initialize,
    .vendor = [](const char** out) { return give<const char*>(out, "Skillet"); },
    .build = [](const char** out) { return give<const char*>(out, build()); },
    .capabilities = [](int* out) { return give(out, kBasicCapability); },
    .create_device = create_device,
    .destroy_device =
        [](Device* device) {
          delete device;
          return kOk;
        },
    .input_requirements = [](Invocation* one, int index, const RankedType* asked,
                             HostRequirements** out) { return requirements(*one, true, index, asked, out); },
    .output_requirements = [](Invocation* one, int index, const RankedType* asked,
                              HostRequirements** out) { return requirements(*one, false, index, asked, out); },
    .register_buffer = register_buffer,
    .unregister_buffer = [](Device*, uint64_t) { return kOk; },
    .create_invocation = create_invocation,
    .destroy_invocation =
        [](Invocation* one) {
          delete one;
          return kOk;
        },
    .set_scheduling = [](Invocation*, const void*) { return kOk; },
    .attach_input = [](Invocation* one, int index,
                       uint64_t handle) { return attach_to(*one, one->inputs, index, handle); },
    .attach_output = [](Invocation* one, int index,
                        uint64_t handle) { return attach_to(*one, one->outputs, index, handle); },
    .detach_input = [](Invocation* one, int index, uint64_t) { return detach_from(*one, one->inputs, index); },
    .detach_output = [](Invocation* one, int index, uint64_t) { return detach_from(*one, one->outputs, index); },
    .invoke = [](Invocation* one) { return guarded(kFailed, [&] { return invoke(*one); }); },
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

EXPORTED Status LiteRtDispatchGetApi(DispatchApi* out) {
  if (out == nullptr) return kInvalid;
  if (out->header.struct_size < sizeof *out || out->header.major != kMajor) return refused(kTooOld);
  *out = {{sizeof *out, kMajor, 0, 0}, kVersion, &kTable, nullptr, nullptr, nullptr};
  return kOk;
}

EXPORTED Status LiteRtDispatchQueryInterface(int id, Version version, const void** out) {
  static constexpr DispatchQueryTable kBasic{{sizeof(DispatchQueryTable), kMajor, 0, 0}, kTable, nullptr, nullptr};
  if (out == nullptr) return kInvalid;
  if (id != kBasicInterface || version.major < kQueryVersion.major) return kUnsupported;
  *out = &kBasic;
  return kOk;
}
