// Progress: shows on the terminal what is running, with the seconds so far.
// Called by verbs around work that may take over half a second. Silent if stderr is no terminal.
// Must not know: the work.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/stopwatch.h"

namespace skillet::tools {

// Create it for the duration of the work; the line disappears with it.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  // Changes the text.
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
