#include "runtime/device_pool.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/device_context.h"

namespace skillet::runtime {

DevicePool::DevicePool(std::shared_ptr<DeviceContext> first, size_t most, Open open)
    : most_(most), open_(std::move(open)), files_{{std::move(first)}} {
  if (most_ > 1) files_.front().context->file = 1;
}

// If opening fails, a later call tries again.
bool DevicePool::open_another() {
  if (files_.size() >= most_) return false;
  auto more = open_();
  if (more.ok()) {
    files_.push_back({std::move(more).value()});
    files_.back().context->file = files_.size();
  } else {
    log::info("{} of {} cores: {}", files_.size(), most_, more.error().message);
  }
  return more.ok();
}

std::shared_ptr<DeviceContext> DevicePool::hold(File& file) {
  ++file.holders;
  DeviceContext* const context = file.context.get();
  return {context, [pool = shared_from_this()](const DeviceContext* held) { pool->give_back(held); }};
}

std::shared_ptr<DeviceContext> DevicePool::take() {
  const std::lock_guard lock(mutex_);
  const auto least = [&] { return std::ranges::min_element(files_, {}, &File::holders); };
  if (least()->holders != 0) open_another();
  return hold(*least());
}

std::vector<std::shared_ptr<DeviceContext>> DevicePool::take(size_t count) {
  const std::lock_guard lock(mutex_);
  while (files_.size() < count && open_another()) {
  }
  std::vector<File*> order;
  for (File& file : files_) order.push_back(&file);
  std::ranges::stable_sort(order, {}, &File::holders);
  order.resize(std::min(count, order.size()));
  std::vector<std::shared_ptr<DeviceContext>> taken;
  for (File* file : order) taken.push_back(hold(*file));
  return taken;
}

// In a child of fork() the lock may be held by a thread that does not exist there, and files are no longer taken.
void DevicePool::give_back(const DeviceContext* context) {
  if (!process_.is_here()) return;
  const std::lock_guard lock(mutex_);
  --std::ranges::find(files_, context, [](const File& file) { return file.context.get(); })->holders;
}

use::Totals DevicePool::use() const {
  const std::lock_guard lock(mutex_);
  use::Totals all;
  for (const File& file : files_)
    if (file.context->use != nullptr) all += file.context->use->totals();
  return all;
}

size_t DevicePool::open_files() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

}  // namespace skillet::runtime
