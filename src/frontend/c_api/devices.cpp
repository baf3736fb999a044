// Devices of the C interface: list of devices, shared memory, log.
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log_sink.h"
#include "frontend/c_api/internal.h"
#include "runtime/device_list.h"

struct skillet_device_list {
  std::vector<skillet::runtime::ListedDevice> devices;
};

namespace {

using skillet::ErrorCode;
using skillet::Result;
using skillet::c_api::guard;
using skillet::c_api::null_argument;

Result<skillet::runtime::DeviceContext*> context_of(const skillet_device* device) {
  if (device == nullptr) return null_argument("device");
  if (device->target.context == nullptr)
    return skillet::error(ErrorCode::unsupported, "device '{}' shares no buffers: use any memory", device->target.name);
  SK_TRY(device->target.context->check_process());
  return device->target.context.get();
}

Result<void> listed_device(const skillet_device_list* list, size_t index, skillet_listed_device* out) {
  if (list == nullptr) return null_argument("list");
  SK_TRY(skillet::c_api::check_info(out));
  if (index >= list->devices.size())
    return skillet::error(ErrorCode::invalid_argument, "no device {}; the list has {}", index, list->devices.size());
  const skillet::runtime::ListedDevice& one = list->devices[index];
  *out = {.struct_bytes = sizeof *out,
          .device = one.device.c_str(),
          .title = one.title.c_str(),
          .kernel_driver = one.kernel_driver.c_str(),
          .note = one.note.c_str(),
          .usable = one.usable,
          .simulated = one.simulated};
  return {};
}

}  // namespace

skillet_status skillet_list_devices(skillet_device_list** out) {
  return guard([&]() -> Result<void> {
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    *out = new skillet_device_list{skillet::runtime::list_devices()};
    return {};
  });
}

size_t skillet_list_count(const skillet_device_list* list) { return list == nullptr ? 0 : list->devices.size(); }

skillet_status skillet_list_at(const skillet_device_list* list, size_t index, skillet_listed_device* out) {
  return guard([&] { return listed_device(list, index, out); });
}

void skillet_free_list(skillet_device_list* list) { delete list; }

skillet_status skillet_open(const char* device, skillet_device** out) {
  return guard([&]() -> Result<void> {
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    const std::string meant = skillet::runtime::device_meant(device == nullptr ? "" : device);
    SK_TRY_ASSIGN(skillet::runtime::Target target, skillet::runtime::open_target(meant));
    *out = new skillet_device{std::move(target)};
    return {};
  });
}

void skillet_close(skillet_device* device) { delete device; }

skillet_status skillet_buffer_alloc(skillet_device* device, size_t bytes, void** data, int* dmabuf_fd) {
  return guard([&]() -> Result<void> {
    if (data == nullptr) return null_argument("data");
    *data = nullptr;
    SK_TRY_ASSIGN(auto* context, context_of(device));
    const std::lock_guard lock(context->mutex);
    SK_TRY_ASSIGN(const auto buffer, context->shared.alloc(*context->device, bytes));
    *data = buffer.bytes.data();
    if (dmabuf_fd != nullptr) *dmabuf_fd = buffer.dmabuf;
    return {};
  });
}

skillet_status skillet_buffer_import(skillet_device* device, int dmabuf_fd, void** data, size_t* bytes) {
  return guard([&]() -> Result<void> {
    if (data == nullptr) return null_argument("data");
    if (bytes == nullptr) return null_argument("bytes");
    *data = nullptr;
    *bytes = 0;
    SK_TRY_ASSIGN(auto* context, context_of(device));
    const std::lock_guard lock(context->mutex);
    SK_TRY_ASSIGN(const auto buffer, context->shared.import(*context->device, dmabuf_fd));
    *data = buffer.bytes.data();
    *bytes = buffer.bytes.size();
    return {};
  });
}

skillet_status skillet_buffer_free(skillet_device* device, void* data) {
  return guard([&]() -> Result<void> {
    SK_TRY_ASSIGN(auto* context, context_of(device));
    const std::lock_guard lock(context->mutex);
    return context->shared.free(*context->device, static_cast<const uint8_t*>(data));
  });
}

int skillet_buffer_find(const void* data, size_t bytes, skillet_buffer_info* out) {
  if (data == nullptr || out == nullptr || out->struct_bytes != sizeof *out) return 0;
  const auto found = skillet::runtime::SharedBuffers::find_anywhere({static_cast<const uint8_t*>(data), bytes});
  if (!found) return 0;
  out->data = found->bytes.data();
  out->bytes = found->bytes.size();
  out->dmabuf_fd = found->dmabuf;
  out->serial = found->serial;
  return 1;
}

skillet_status skillet_set_log(skillet_log_function function, void* user, skillet_log_level level) {
  return guard([&]() -> Result<void> {
    using skillet::log::Level;
    int wanted = 0;  // a C caller may pass any number
    static_assert(sizeof wanted == sizeof level);
    std::memcpy(&wanted, &level, sizeof wanted);
    if (wanted < SKILLET_LOG_ERROR || wanted > SKILLET_LOG_DEBUG)
      return skillet::error(ErrorCode::invalid_argument, "log level {} does not exist", wanted);
    skillet::log::Sink sink;
    if (function != nullptr)
      sink = [function, user](Level of_line, const char* message) {
        function(user, static_cast<skillet_log_level>(of_line), message);
      };
    skillet::log::set_sink(std::move(sink), static_cast<Level>(wanted));
    return {};
  });
}
