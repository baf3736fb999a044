// Our own capture file: one device record, then blobs (each distinct buffer content once) and submissions.
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "capture/archive.h"
#include "capture/capture.h"
#include "capture/capture_format.h"
#include "capture/file_writer.h"

namespace skillet::capture {
namespace {

constexpr uint64_t kContentsLimitBytes = 8ULL << 30;

enum RecordKind : uint32_t { kDevice = 1, kBlob = 2, kSubmission = 3 };

void visit_device(auto& archive, auto& device) {
  archive.text("kernel_driver", device.kernel_driver);
  archive.text("node", device.node);
  archive.text("compatible", device.compatible);
  archive.list("facts", device.facts, [](auto& inner, auto& fact) {
    inner.text("name", fact.name);
    inner.number("value", fact.value);
  });
}

void visit_task(auto& archive, auto& task) {
  archive.number("job", task.job);
  archive.number("address", task.address);
  archive.number("count", task.count);
}

void visit_parameter(auto& archive, auto& parameter) {
  archive.text("name", parameter.name);
  archive.number("value", parameter.value);
}

// A buffer without its bytes: those are a blob.
void visit_buffer(auto& archive, auto& buffer) {
  archive.number("handle", buffer.handle);
  archive.number("address", buffer.address);
  archive.number("size_bytes", buffer.size_bytes);
  archive.flag("read", buffer.read);
  archive.flag("write", buffer.write);
  archive.flag("listed", buffer.listed);
  archive.choice("content", buffer.content, Content::unknown);
  archive.flag("holds_input", buffer.holds_input);
}

// Stores each distinct content once: the weights are the same before every submission.
class BlobWriter {
 public:
  explicit BlobWriter(std::vector<PackedRecord>& records) : records_(records) {}

  uint32_t add(const Bytes& bytes) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    const auto [found, is_new] = known_.try_emplace({hash.high64, hash.low64}, static_cast<uint32_t>(known_.size()));
    if (is_new) records_.push_back({kBlob, bytes});
    return found->second;
  }

 private:
  std::vector<PackedRecord>& records_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> known_;
};

Bytes write_submission(const Submission& submission, BlobWriter& blobs) {
  ArchiveWriter writer;
  writer.list("parameters", submission.parameters,
              [](auto& archive, const Parameter& parameter) { visit_parameter(archive, parameter); });
  writer.words("stream", submission.stream);
  writer.list("tasks", submission.tasks, [](auto& archive, const Task& task) { visit_task(archive, task); });
  writer.list("buffers", submission.buffers, [&](auto& archive, const BufferSnapshot& buffer) {
    visit_buffer(archive, buffer);
    if (buffer.content == Content::bytes) archive.number("blob", blobs.add(buffer.bytes));
  });
  return writer.take();
}

// `budget` is what the contents of buffers may still take: one blob may be named by many buffers.
Result<Submission> read_submission(const Bytes& record, std::span<const Bytes* const> blobs, uint64_t& budget) {
  Submission submission;
  ArchiveReader reader(record);
  std::optional<Error> problem;
  const auto visit = [&](auto& archive, BufferSnapshot& buffer) {
    visit_buffer(archive, buffer);
    if (buffer.content != Content::bytes) return;
    uint32_t blob = 0;
    archive.number("blob", blob);
    const uint64_t limit = std::min(buffer.size_bytes, budget);
    if (archive.ok() && blob < blobs.size() && blobs[blob]->size() <= limit) {
      buffer.bytes = *blobs[blob];
      budget -= buffer.bytes.size();
    } else if (!problem) {
      problem = error(ErrorCode::malformed, "buffer {}: its contents (blob {}) are missing or too large", buffer.handle,
                      blob);
    }
  };
  reader.list("parameters", submission.parameters,
              [](auto& archive, Parameter& parameter) { visit_parameter(archive, parameter); });
  reader.words("stream", submission.stream);
  reader.list("tasks", submission.tasks, [](auto& archive, Task& task) { visit_task(archive, task); });
  reader.list("buffers", submission.buffers, visit);
  SK_TRY(reader.finish());
  if (problem) return *problem;
  return submission;
}

Result<DeviceInfo> read_device(const Bytes& record) {
  DeviceInfo device;
  ArchiveReader reader(record);
  visit_device(reader, device);
  SK_TRY(reader.finish());
  return device;
}

PackedRecord write_device(const DeviceInfo& info) {
  ArchiveWriter device;
  visit_device(device, info);
  return {kDevice, device.take()};
}

}  // namespace

struct FileWriter::State {
  int fd = -1;
  std::string path;
  uint64_t end = 0;          // where the end record is
  uint64_t before_last = 0;  // where the last submission's own record is; 0: nothing to take back
  uint64_t unpacked_bytes = 0;
  std::vector<PackedRecord> pending;
  BlobWriter blobs{pending};

  ~State() {
    if (fd >= 0) ::close(fd);
  }
  Result<void> write_at(uint64_t offset, std::span<const uint8_t> bytes) const;
  Result<void> flush();
};

Result<void> FileWriter::State::write_at(uint64_t offset, std::span<const uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return error(ErrorCode::io, "{}: {}", path, std::strerror(written < 0 ? errno : ENOSPC));
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

// Puts the pending records, and a new end record, where the end record was.
Result<void> FileWriter::State::flush() {
  Bytes out;
  for (const PackedRecord& record : pending) {
    unpacked_bytes += record.bytes.size();
    if (unpacked_bytes > kCaptureFormat.limit_bytes)
      return error(ErrorCode::out_of_range, "{}: a capture file holds at most {} bytes", path,
                   kCaptureFormat.limit_bytes);
    before_last = end + out.size();
    SK_TRY(append_packed_record(out, record));
  }
  const size_t size = out.size();
  SK_TRY(append_packed_record(out, {}));
  SK_TRY(write_at(end, out));
  end += size;
  pending.clear();
  return {};
}

FileWriter::FileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

Result<FileWriter> FileWriter::create(const std::string& path, const DeviceInfo& device) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (state->fd < 0) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  const Bytes header = pack_file_header(kCaptureFormat);
  SK_TRY(state->write_at(0, header));
  state->end = header.size();
  state->pending.push_back(write_device(device));
  SK_TRY(state->flush());
  state->before_last = 0;
  return FileWriter(std::move(state));
}

Result<void> FileWriter::append(const Submission& submission) {
  Bytes record = write_submission(submission, state_->blobs);
  state_->pending.push_back({kSubmission, std::move(record)});
  return state_->flush();
}

// Blobs of the submission stay: later ones may name them.
Result<void> FileWriter::drop_last() {
  if (state_->before_last == 0) return {};
  state_->end = std::exchange(state_->before_last, 0);
  if (::ftruncate(state_->fd, static_cast<off_t>(state_->end)) != 0)
    return error(ErrorCode::io, "{}: {}", state_->path, std::strerror(errno));
  return state_->flush();
}

Result<Bytes> serialise(const Capture& capture) {
  std::vector<PackedRecord> records;
  records.push_back(write_device(capture.device));
  BlobWriter blobs(records);
  for (const Submission& submission : capture.submissions) {
    Bytes bytes = write_submission(submission, blobs);
    records.push_back({kSubmission, std::move(bytes)});
  }
  return pack_records(kCaptureFormat, records);
}

Result<Capture> parse(std::span<const uint8_t> file) {
  SK_TRY_ASSIGN(const std::vector<PackedRecord> records, unpack_records(kCaptureFormat, file));
  if (records.empty() || records[0].kind != kDevice)
    return error(ErrorCode::malformed, "the first record does not describe a device");
  Capture capture;
  SK_TRY_ASSIGN(capture.device, read_device(records[0].bytes).with_context("device"));
  std::vector<const Bytes*> blobs;
  uint64_t budget = kContentsLimitBytes;
  for (size_t i = 1; i < records.size(); ++i) {
    if (records[i].kind == kBlob) {
      blobs.push_back(&records[i].bytes);
      continue;
    }
    if (records[i].kind != kSubmission)
      return error(ErrorCode::malformed, "record {}: unknown kind {}", i, records[i].kind);
    auto submission = read_submission(records[i].bytes, blobs, budget);
    if (!submission.ok())
      return std::move(submission).error().with_context(fmt::format("submission {}", capture.submissions.size()));
    capture.submissions.push_back(std::move(submission).value());
  }
  return capture;
}

}  // namespace skillet::capture
