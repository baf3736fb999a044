// Reader: a capture, submission by submission, with no more in memory than one of them.
// Called by whatever looks at captures.
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
  // A capture file of Skillet, or a folder that holds capture.json (golden layout). Errors name file and field.
  static Result<Reader> open(const std::string& path);
  static Reader of(Capture capture);
  // The bytes of a capture file.
  static Result<Reader> parse(SharedBytes file);

  const DeviceInfo& device() const;
  // How many submissions there are, as far as the start of each shows.
  size_t count() const { return count_; }
  // From here on, next() gives only the last `count` submissions.
  void only_last(size_t count);
  // The next submission; nothing after the last one. index() is its place in the capture.
  Result<std::optional<Submission>> next();
  size_t index() const { return next_ - 1; }
  void rewind() { next_ = 0; }
  // One line about what follows the last submission: the file was cut off. Empty: nothing does.
  const std::string& cut_off() const;

  class Source;

 private:
  explicit Reader(std::shared_ptr<Source> source);
  std::shared_ptr<Source> source_;
  size_t count_ = 0, first_ = 0, next_ = 0;
};

// All that next() gives.
Result<Capture> read_all(Reader& reader);

}  // namespace skillet::capture
