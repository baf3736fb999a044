#include "tools/show/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/caught.h"
#include "base/text.h"

namespace skillet::tools {

Progress::Progress(std::string what) : what_(printable(what)) {
  if (!isatty(STDERR_FILENO)) return;
  // Shows nothing if there is no thread or memory.
  static_cast<void>(caught([this]() -> Result<void> {
    thread_ = std::thread([this] {
      static_cast<void>(caught([this]() -> Result<void> {
        show();
        return {};
      }));
    });
    return {};
  }));
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Progress::say(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = printable(what);
}

void Progress::show() {
  constexpr auto kInterval = std::chrono::milliseconds(500);
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return done_; })) {
    std::fputs(fmt::format("\r\033[K{} ... {:.0f} s", what_, clock_.ms() / 1000).c_str(), stderr);
    std::fflush(stderr);
    shown = true;
  }
  if (shown) std::fputs("\r\033[K", stderr);
}

}  // namespace skillet::tools
