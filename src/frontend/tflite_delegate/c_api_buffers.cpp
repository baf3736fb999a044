#include "frontend/tflite_delegate/c_api_buffers.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/log.h"

namespace skillet::delegate {
namespace {

void take_back(runtime::DeviceContext& context, const skillet_buffer_info& info) {
  if (!context.process.is_here()) return;
  const std::lock_guard lock(context.mutex);
  auto freed = context.shared.free(*context.device, static_cast<const uint8_t*>(info.data));
  if (!freed.ok()) log::warning("releasing a shared buffer: {}", freed.error().message);
}

}  // namespace

CApiBuffers::~CApiBuffers() {
  if (library_ != nullptr) ::dlclose(library_);
}

// Looks by file name first: programs in other languages load the library without global symbols. The handle keeps it
// loaded.
void CApiBuffers::find_library() {
  if (find_ != nullptr) return;
  constexpr const char* kFunction = "skillet_buffer_find";
  library_ = ::dlopen("libskillet_c.so.0", RTLD_NOLOAD | RTLD_LAZY);
  void* symbol = ::dlsym(library_ != nullptr ? library_ : RTLD_DEFAULT, kFunction);
  if (symbol == nullptr && library_ != nullptr) {
    ::dlclose(library_);  // an older version
    library_ = nullptr;
  }
  find_ = reinterpret_cast<decltype(find_)>(symbol);
  if (find_ != nullptr) log::debug("libskillet_c is here: tensors in its buffers are used in place");
}

bool CApiBuffers::lives(const Known& known) const {
  skillet_buffer_info now{.struct_bytes = sizeof now};
  return find_(known.info.data, known.info.bytes, &now) == 1 && now.serial == known.info.serial;
}

void CApiBuffers::drop_freed(runtime::DeviceContext& context) {
  std::erase_if(known_, [&](const Known& known) {
    if (lives(known)) return false;
    if (known.imported) take_back(context, known.info);
    return true;
  });
}

void CApiBuffers::import(runtime::DeviceContext& context, std::span<const uint8_t> bytes) {
  skillet_buffer_info info{.struct_bytes = sizeof info};
  if (!context.process.is_here()) return;  // the run reports the error
  if (find_ == nullptr || bytes.empty() || find_(bytes.data(), bytes.size(), &info) != 1) return;
  const auto same = [&](const Known& known) { return known.info.serial == info.serial; };
  if (std::ranges::any_of(known_, same)) return;
  known_.push_back({info});
  const std::span<uint8_t> all(static_cast<uint8_t*>(info.data), info.bytes);
  const std::lock_guard lock(context.mutex);
  const auto imported = context.shared.import(*context.device, info.dmabuf_fd, all);
  known_.back().imported = imported.ok();
  if (!imported.ok()) log::info("tensors in a shared buffer are copied: {}", imported.error().message);
}

void CApiBuffers::release(runtime::DeviceContext& context) {
  for (const Known& known : known_) {
    if (known.imported) take_back(context, known.info);
  }
  known_.clear();
}

}  // namespace skillet::delegate
