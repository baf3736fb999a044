// FileWriter: a capture file that grows by one submission at a time and is whole after each, so that what was recorded
// survives a crash of the process that is recorded, and a disk that fills up. Sink: code that takes submissions.
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
  // Creates the file; an error when there is one already.
  static Result<FileWriter> create(const std::string& path, const DeviceInfo& device);
  FileWriter(FileWriter&&) noexcept;
  ~FileWriter();

  // When it fails, the file is as it was before.
  Result<void> append(const Submission& submission);
  // Takes back the last submission, one that the kernel refused. Once per append().
  Result<void> drop_last();

 private:
  struct State;
  explicit FileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct Sink {
  std::function<Result<void>(const DeviceInfo&, Submission)> append;
  std::function<Result<void>()> drop_last;  // takes back what append() got, once
};
Sink into(Capture& capture);  // borrowed
// A file that is made for the first submission. An error when there is one already; into_next_file() takes the next
// free name of PATH, PATH.2, PATH.3, ...
Sink into_file(std::string path);
Sink into_next_file(std::string path);

}  // namespace skillet::capture
