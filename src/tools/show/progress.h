// Progress: says on the terminal what takes time, with the seconds so far.
// Called by verbs around anything that may take over half a second. Silent where stderr is no terminal.
// Must not know: what is being done.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/stopwatch.h"

namespace skillet::tools {

// Lives as long as the work; the line disappears with it.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  // From here on it is this.
  void say(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  std::string what_;
  Stopwatch clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace skillet::tools
