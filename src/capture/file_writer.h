// FileWriter: a capture file that grows by one submission at a time and is complete after each, so that the recording
// survives a crash of the recorded process, or a full disk. Sink: code that takes submissions.
// Called by the recording interposer and `skillet run --record`.
// Must not know: where submissions come from.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "capture/capture.h"

namespace skillet::capture {

class FileWriter {
 public:
  // Creates the file; an error if it already exists.
  static Result<FileWriter> create(const std::string& path, const DeviceInfo& device);
  FileWriter(FileWriter&&) noexcept;
  ~FileWriter();

  // After an error the file is unchanged.
  Result<void> append(const Submission& submission);
  // Removes the last submission, which the kernel refused. At most once per append().
  Result<void> drop_last();

 private:
  struct State;
  explicit FileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct Sink {
  std::function<Result<void>(const DeviceInfo&, Submission)> append;
  std::function<Result<void>()> drop_last;  // removes the last submission of append(), once
};
Sink into(Capture& capture);  // borrowed
// A file that is created for the first submission. An error if it already exists; into_next_file() takes the first free
// name of PATH, PATH.2, PATH.3, ...
Sink into_file(std::string path);
Sink into_next_file(std::string path);

}  // namespace skillet::capture
