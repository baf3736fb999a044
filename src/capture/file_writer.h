// FileWriter: a capture file that grows by one submission at a time and is whole after each, so that what was recorded
// survives a crash of the process that is recorded.
// Called by the recording interposer.
// Must not know: where submissions come from.
#pragma once

#include <memory>
#include <string>

#include "capture/capture.h"

namespace skillet::capture {

class FileWriter {
 public:
  // Creates the file; an error when there is one already.
  static Result<FileWriter> create(const std::string& path, const DeviceInfo& device);
  FileWriter(FileWriter&&) noexcept;
  ~FileWriter();

  Result<void> append(const Submission& submission);
  // Takes back the last submission, one that the kernel refused. Once per append().
  Result<void> drop_last();

 private:
  struct State;
  explicit FileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace skillet::capture
