#include "capture/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/interruptions.h"
#include "base/log.h"
#include "capture/frames.h"
#include "capture/source.h"

namespace skillet::capture {
namespace {

// A file on the disk, or its bytes in memory.
class File {
 public:
  static Result<File> open(const std::string& path);
  explicit File(SharedBytes bytes) : size_(bytes.size()), bytes_(std::move(bytes)) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), size_(other.size_), bytes_(other.bytes_) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  uint64_t size() const { return size_; }
  // Reads up to `size_bytes` from `offset` on, fewer at the end.
  Result<Bytes> read(uint64_t offset, uint64_t size_bytes) const;

 private:
  explicit File(int fd) : fd_(fd) {}
  int fd_ = -1;
  uint64_t size_ = 0;
  SharedBytes bytes_;
};

Result<File> File::open(const std::string& path) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.fd_ < 0 || ::fstat(file.fd_, &status) != 0) return error(ErrorCode::io, "{}", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return error(ErrorCode::io, "is not a regular file");
  file.size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

Result<Bytes> File::read(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t size = offset < size_ ? std::min(size_bytes, size_ - offset) : 0;
  Bytes out(size);
  if (fd_ < 0) {
    std::ranges::copy(std::span<const uint8_t>(bytes_).subspan(std::min(offset, size_), size), out.begin());
    return out;
  }
  Interruptions interruptions;
  for (size_t got = 0; got < size;) {
    const ssize_t now = ::pread(fd_, out.data() + got, size - got, static_cast<off_t>(offset + got));
    if (interruptions.again(now)) continue;
    if (now < 0) return error(ErrorCode::io, "{}", std::strerror(errno));
    if (now == 0) return error(ErrorCode::io, "was shortened while it was read");
    got += static_cast<size_t>(now);
  }
  return out;
}

class FileSource final : public Reader::Source {
 public:
  explicit FileSource(File file) : file_(std::move(file)) {}
  Result<void> start();
  size_t count() const override { return count_; }
  Result<Submission> submission(size_t index) override;

 private:
  // The header at `offset`; none if the file ends within the frame; error malformed if there is something else.
  Result<std::optional<FrameHeader>> header_at(uint64_t offset) const;
  Result<void> scan();

  File file_;
  FrameReader frames_;
  uint64_t first_ = 0, at_ = 0;  // positions of the first and the next submission
  size_t count_ = 0;
};

Result<std::optional<FrameHeader>> FileSource::header_at(uint64_t offset) const {
  FrameHeader header;
  SK_TRY_ASSIGN(const Bytes bytes, file_.read(offset, sizeof header));
  if (bytes.size() < sizeof header) return std::optional<FrameHeader>();
  std::memcpy(&header, bytes.data(), sizeof header);
  // A crash may leave zeros instead of the frame.
  if (std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; })) return std::optional<FrameHeader>();
  if (!is_header(header)) return error(ErrorCode::malformed, "damaged: no submission begins at byte {}", offset);
  if (header.stored_bytes > file_.size() - offset - sizeof header) return std::optional<FrameHeader>();
  return std::optional(header);
}

Result<void> FileSource::start() {
  SK_TRY_ASSIGN(const Bytes start, file_.read(0, kStartBytes));
  SK_TRY(check_start(start));
  SK_TRY_ASSIGN(const std::optional<FrameHeader> header, header_at(kStartBytes));
  if (!header) return error(ErrorCode::malformed, "truncated: it ends before the device is described");
  first_ = kStartBytes + sizeof *header + header->stored_bytes;
  SK_TRY_ASSIGN(const Bytes stored, file_.read(kStartBytes + sizeof *header, header->stored_bytes));
  SK_TRY_ASSIGN(device, frames_.device(*header, stored, first_).with_context("device"));
  return scan();
}

// Counts the complete frames, and one damaged frame, which is an error when it is read.
Result<void> FileSource::scan() {
  uint64_t at = first_;
  while (at < file_.size()) {
    const auto header = header_at(at);
    if (!header.ok() && header.error().code == ErrorCode::malformed) {
      ++count_;
      return {};
    }
    SK_TRY(header);
    if (!*header) break;
    at += sizeof **header + (*header)->stored_bytes;
    ++count_;
  }
  if (at < file_.size())
    cut_off = fmt::format("cut off after submission {}: its last {} bytes are not a whole submission", count_,
                          file_.size() - at);
  return {};
}

Result<Submission> FileSource::submission(size_t index) {
  if (index == 0) {
    at_ = first_;
    frames_ = {};
  }
  SK_TRY_ASSIGN(const std::optional<FrameHeader> header, header_at(at_));
  if (!header) return error(ErrorCode::io, "was shortened while it was read");
  SK_TRY_ASSIGN(const Bytes stored, file_.read(at_ + sizeof *header, header->stored_bytes));
  at_ += sizeof *header + stored.size();
  return frames_.submission(*header, stored, at_);
}

class MemorySource final : public Reader::Source {
 public:
  explicit MemorySource(Capture capture) : capture_(std::move(capture)) { device = capture_.device; }
  size_t count() const override { return capture_.submissions.size(); }
  Result<Submission> submission(size_t index) override { return capture_.submissions[index]; }

 private:
  Capture capture_;
};

}  // namespace

Reader::Reader(std::shared_ptr<Source> source) : source_(std::move(source)), count_(source_->count()) {}

Result<Reader> Reader::open(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) {
    SK_TRY_ASSIGN(std::shared_ptr<Source> folder, open_golden_folder(path).with_context(path));
    return Reader(std::move(folder));
  }
  SK_TRY_ASSIGN(File file, File::open(path).with_context(path));
  auto source = std::make_shared<FileSource>(std::move(file));
  SK_TRY(source->start().with_context(path));
  if (!source->cut_off.empty()) source->cut_off.insert(0, path + ": ");
  return Reader(std::move(source));
}

Reader Reader::of(Capture capture) { return Reader(std::make_shared<MemorySource>(std::move(capture))); }

Result<Reader> Reader::parse(SharedBytes file) {
  auto source = std::make_shared<FileSource>(File(std::move(file)));
  SK_TRY(source->start());
  return Reader(std::move(source));
}

const DeviceInfo& Reader::device() const { return source_->device; }
const std::string& Reader::cut_off() const { return source_->cut_off; }

void Reader::only_last(size_t count) { first_ = count < count_ ? count_ - count : 0; }

Result<std::optional<Submission>> Reader::next() {
  while (next_ < count_) {
    auto one = source_->submission(next_++);
    if (!one.ok()) return std::move(one).error().with_context(fmt::format("submission {}", index()));
    if (index() >= first_) return std::optional(std::move(one).value());
  }
  return std::optional<Submission>();
}

}  // namespace skillet::capture
