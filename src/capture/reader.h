// Reader: reads a capture submission by submission, with only one of them in memory.
// Called by all code that reads captures.
// Must not know: what the bytes mean.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "capture/capture.h"

namespace skillet::capture {

class Reader {
 public:
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = default;
  // Opens a capture file of Skillet, or a folder with capture.json (golden layout). Errors name file and field.
  static Result<Reader> open(const std::string& path);
  static Reader of(Capture capture);
  // The bytes of a capture file.
  static Result<Reader> parse(SharedBytes file);

  const DeviceInfo& device() const;
  // Number of submissions, as far as the start of each shows.
  size_t count() const { return count_; }
  // From now on next() returns only the last `count` submissions.
  void only_last(size_t count);
  // The next submission; none after the last one. index() is its position in the capture.
  Result<std::optional<Submission>> next();
  size_t index() const { return next_ - 1; }
  void rewind() { next_ = 0; }
  // One line about truncated data after the last submission; empty: the file is complete.
  const std::string& cut_off() const;

  class Source;

 private:
  explicit Reader(std::shared_ptr<Source> source);
  std::shared_ptr<Source> source_;
  size_t count_ = 0, first_ = 0, next_ = 0;
};

// All submissions that next() returns.
Result<Capture> read_all(Reader& reader);

}  // namespace skillet::capture
