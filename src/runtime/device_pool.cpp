#include "runtime/device_pool.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/device_context.h"

namespace skillet::runtime {

DevicePool::DevicePool(std::shared_ptr<DeviceContext> first, size_t most, Open open)
    : most_(most), open_(std::move(open)), files_{{std::move(first)}} {}

std::shared_ptr<DeviceContext> DevicePool::take() {
  const std::lock_guard lock(mutex_);
  auto least = std::ranges::min_element(files_, {}, &File::holders);
  if (least->holders != 0 && files_.size() < most_) {
    auto more = open_();
    if (more.ok()) {
      least = files_.insert(files_.end(), File{std::move(more).value()});
    } else {  // the next one may have more luck
      log::info("{} of {} cores: {}", files_.size(), most_, more.error().message);
    }
  }
  ++least->holders;
  DeviceContext* const context = least->context.get();
  return {context, [pool = shared_from_this()](const DeviceContext* held) { pool->give_back(held); }};
}

void DevicePool::give_back(const DeviceContext* context) {
  const std::lock_guard lock(mutex_);
  --std::ranges::find(files_, context, [](const File& file) { return file.context.get(); })->holders;
}

size_t DevicePool::open_files() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

}  // namespace skillet::runtime
