// Our own capture file: one device record, then blobs (each distinct buffer content once) and submissions.
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "capture/archive.h"
#include "capture/capture.h"
#include "capture/capture_format.h"

namespace skillet::capture {
namespace {

constexpr uint64_t kContentsLimitBytes = 8ULL << 30;

enum RecordKind : uint32_t { kDevice = 1, kBlob = 2, kSubmission = 3 };

void visit_device(auto& archive, auto& device) {
  archive.text("kernel_driver", device.kernel_driver);
  archive.text("node", device.node);
  archive.number("model", device.model);
  archive.number("revision", device.revision);
  archive.number("product_id", device.product_id);
  archive.number("customer_id", device.customer_id);
  archive.number("eco_id", device.eco_id);
}

void visit_task(auto& archive, auto& task) {
  archive.number("job", task.job);
  archive.number("address", task.address);
  archive.number("count", task.count);
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
  writer.text("chip", submission.chip);
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
  reader.text("chip", submission.chip);
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

}  // namespace

Result<Bytes> serialise(const Capture& capture) {
  std::vector<PackedRecord> records;
  ArchiveWriter device;
  visit_device(device, capture.device);
  records.push_back({kDevice, device.take()});
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
