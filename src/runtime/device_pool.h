// DevicePool: the open files of one NPU, at most one per core: its kernel driver gives each file one core at a time.
// Called by sessions and by open_target().
// Must not know: programs, single kernel drivers.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/own_process.h"
#include "base/result.h"
#include "base/use_page.h"

namespace skillet::runtime {

struct DeviceContext;

class DevicePool : public std::enable_shared_from_this<DevicePool> {
 public:
  using Open = std::function<Result<std::shared_ptr<DeviceContext>>()>;
  // At most `most` files, `first` among them; further files are opened when needed.
  DevicePool(std::shared_ptr<DeviceContext> first, size_t most, Open open);

  // Returns the file with the fewest holders, or opens another file if all have some. It is held until the last copy of
  // the pointer is destroyed. Thread-safe.
  std::shared_ptr<DeviceContext> take();
  // Returns `count` different files, those with the fewest holders first; fewer if there are no more.
  std::vector<std::shared_ptr<DeviceContext>> take(size_t count);
  size_t most() const { return most_; }
  size_t open_files() const;
  // Counters of all files together.
  use::Totals use() const;

 private:
  struct File {
    std::shared_ptr<DeviceContext> context;
    size_t holders = 0;
  };
  bool open_another();
  std::shared_ptr<DeviceContext> hold(File& file);
  void give_back(const DeviceContext* context);

  mutable std::mutex mutex_;
  const size_t most_;
  Open open_;
  std::vector<File> files_;
  const OwnProcess process_;
};

}  // namespace skillet::runtime
