#include "capture/frames.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file_limits.h"
#include "base/zstd_frame.h"
#include "capture_generated.h"

namespace skillet::capture {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T>
using Offset = flatbuffers::Offset<T>;
template <typename T>
using Vector = flatbuffers::Vector<T>;

constexpr std::array<char, 8> kMagic = {'S', 'K', 'I', 'L', 'C', 'A', 'P', '\n'};
constexpr uint32_t kVersion = 4;
constexpr uint32_t kMaxDepth = 5, kMaxTables = 1 << 20;  // for the verifier
constexpr uint64_t kItemBytes = 8;                       // minimum size of a list item

uint64_t checksum_of(const FrameHeader& header, std::span<const uint8_t> stored) {
  return XXH3_64bits_withSeed(stored.data(), stored.size(), XXH3_64bits(&header, offsetof(FrameHeader, checksum)));
}

// ---- writing ----

template <typename T>
Offset<Vector<Offset<fb::Value>>> pack_values(Builder& to, const std::vector<T>& values) {
  std::vector<Offset<fb::Value>> packed;
  for (const T& one : values) packed.push_back(fb::CreateValue(to, to.CreateString(one.name), one.value));
  return to.CreateVector(packed);
}

Offset<fb::Buffer> pack_buffer(Builder& to, const BufferSnapshot& buffer, bool is_as_before) {
  const bool has_bytes = buffer.content == Content::bytes && !is_as_before;
  const Offset<Vector<uint8_t>> bytes = has_bytes ? to.CreateVector(buffer.bytes.data(), buffer.bytes.size()) : 0;
  return fb::CreateBuffer(to, buffer.handle, buffer.address, buffer.size_bytes, buffer.read, buffer.write,
                          buffer.listed, buffer.holds_input, static_cast<uint8_t>(buffer.content), is_as_before, bytes);
}

Offset<Vector<Offset<fb::Job>>> pack_jobs(Builder& to, const std::vector<Job>& jobs) {
  std::vector<Offset<fb::Job>> packed;
  for (const Job& job : jobs) {
    std::vector<Offset<fb::Commands>> lists;
    for (const Commands& one : job.commands)
      lists.push_back(fb::CreateCommands(to, to.CreateVector(one.words), one.address, one.size_bytes));
    packed.push_back(fb::CreateJob(to, to.CreateVector(lists)));
  }
  return to.CreateVector(packed);
}

// Approximate size of a frame with all of its contents.
uint64_t size_of(const Submission& submission) {
  uint64_t size = (submission.jobs.size() + submission.parameters.size()) * 64;
  for (const Job& job : submission.jobs) {
    for (const Commands& one : job.commands) size += 64 + one.words.size() * 4;
  }
  for (const BufferSnapshot& one : submission.buffers) size += 128 + one.bytes.size();
  return size;
}

// ---- reading; tables are verified, but strings and vectors may be missing ----

std::string text(const flatbuffers::String* from, CopyBudget& budget) {
  return from == nullptr || !budget.take(from->size()) ? std::string() : from->str();
}

template <typename T>
std::vector<T> unpack_values(const Vector<Offset<fb::Value>>* from, CopyBudget& budget) {
  std::vector<T> values;
  for (uint32_t i = 0; from != nullptr && i < from->size() && budget.take(kItemBytes); ++i) {
    const fb::Value& one = *from->Get(i);
    values.push_back({text(one.name(), budget), one.value()});
  }
  return values;
}

Commands unpack_commands(const fb::Commands& from, CopyBudget& budget) {
  Commands out{.words = {}, .address = from.address(), .size_bytes = from.size_bytes()};
  if (from.words() != nullptr && budget.take(from.words()->size() * uint64_t{4}))
    out.words.assign(from.words()->begin(), from.words()->end());
  return out;
}

std::vector<Job> unpack_jobs(const Vector<Offset<fb::Job>>* from, CopyBudget& budget) {
  std::vector<Job> jobs;
  for (uint32_t i = 0; from != nullptr && i < from->size() && budget.take(kItemBytes); ++i) {
    const auto* lists = from->Get(i)->commands();
    Job& job = jobs.emplace_back();
    for (uint32_t k = 0; lists != nullptr && k < lists->size() && budget.take(kItemBytes); ++k)
      job.commands.push_back(unpack_commands(*lists->Get(k), budget));
  }
  return jobs;
}

Result<BufferSnapshot> unpack_buffer(const fb::Buffer& from) {
  if (from.content() > static_cast<uint8_t>(Content::unknown))
    return error(ErrorCode::malformed, "content {} is not known", from.content());
  return BufferSnapshot{.handle = from.handle(),
                        .address = from.address(),
                        .size_bytes = from.size_bytes(),
                        .read = from.read(),
                        .write = from.write(),
                        .listed = from.listed(),
                        .content = static_cast<Content>(from.content()),
                        .bytes = {},
                        .holds_input = from.holds_input()};
}

Result<SharedBytes> contents_of(const fb::Buffer& from, const std::map<uint32_t, SharedBytes>& known,
                                CopyBudget& budget) {
  if (from.is_as_before()) {
    const auto before = known.find(from.handle());
    if (before == known.end()) return error(ErrorCode::malformed, "its contents refer to no earlier submission");
    return before->second;
  }
  if (from.bytes() == nullptr) return error(ErrorCode::malformed, "its contents are missing");
  if (!budget.take(from.bytes()->size())) return SharedBytes();
  return SharedBytes(Bytes(from.bytes()->begin(), from.bytes()->end()));
}

// The next submission can only refer to contents of buffers of this one.
template <typename T>
void keep_only(const Submission& submission, std::map<uint32_t, T>& known) {
  std::vector<uint32_t> handles;
  for (const BufferSnapshot& one : submission.buffers) handles.push_back(one.handle);
  std::ranges::sort(handles);
  std::erase_if(known, [&](const auto& one) { return !std::ranges::binary_search(handles, one.first); });
}

// Returns the table of a frame, valid as long as `table`.
template <typename T>
Result<const T*> open_table(const FrameHeader& header, std::span<const uint8_t> stored, uint64_t file_bytes,
                            Bytes& table) {
  if (checksum_of(header, stored) != header.checksum) return error(ErrorCode::malformed, "checksum mismatch");
  if (header.table_bytes > std::min(kFrameLimitBytes, expansion_limit(file_bytes)))
    return error(ErrorCode::malformed, "unpacks to {} bytes, more than the limit", header.table_bytes);
  if (header.packed != 0) {
    SK_TRY_ASSIGN(table, unpack_zstd(stored, header.table_bytes));
  } else {
    table.assign(stored.begin(), stored.end());
  }
  flatbuffers::Verifier verifier(table.data(), table.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<T>(nullptr)) return error(ErrorCode::malformed, "its table is damaged");
  return flatbuffers::GetRoot<T>(table.data());
}

Error too_much_named() { return error(ErrorCode::malformed, "it refers to the same bytes too often"); }

}  // namespace

Bytes file_start() {
  Bytes start(kStartBytes);
  std::ranges::copy(kMagic, start.begin());
  store_le(start.data() + kMagic.size(), kVersion);
  return start;
}

Result<void> check_start(std::span<const uint8_t> start) {
  if (start.empty()) return error(ErrorCode::malformed, "is empty");
  if (start.size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), start.begin()))
    return error(ErrorCode::malformed, "{}", kNoCapture);
  if (start.size() < kMagic.size() + 4) return error(ErrorCode::malformed, "truncated capture file");
  if (const auto version = load_le<uint32_t>(start.data() + kMagic.size()); version != kVersion)
    return error(ErrorCode::unsupported, "capture file of version {}; this build reads version {}: record it again",
                 version, kVersion);
  if (start.size() < kStartBytes) return error(ErrorCode::malformed, "truncated capture file");
  if (load_le<uint32_t>(start.data() + kMagic.size() + 4) != 0)
    return error(ErrorCode::malformed, "damaged start of a capture file");
  return {};
}

bool is_header(const FrameHeader& header) {
  const bool is_known = header.kind == FrameKind::device || header.kind == FrameKind::submission;
  return is_known && header.packed <= 1 && (header.packed == 1 || header.table_bytes == header.stored_bytes);
}

Result<Bytes> make_frame(FrameKind kind, std::span<const uint8_t> table, bool packed) {
  Bytes frame;
  if (packed) SK_TRY_INTO(frame, pack_zstd(table));
  const std::span<const uint8_t> stored = packed ? frame : table;
  FrameHeader header{
      .kind = kind, .packed = packed ? 1U : 0U, .table_bytes = table.size(), .stored_bytes = stored.size()};
  header.checksum = checksum_of(header, stored);
  Bytes out(sizeof header + stored.size());
  std::memcpy(out.data(), &header, sizeof header);
  std::ranges::copy(stored, out.begin() + sizeof header);
  return out;
}

uint64_t FrameWriter::live_bytes() const {
  uint64_t live = 0;
  for (const auto& [handle, one] : known_) live += one.size_bytes;
  return live;
}

Result<Bytes> FrameWriter::frame(FrameKind kind, std::span<const uint8_t> table, uint64_t file_bytes) const {
  SK_TRY_ASSIGN(Bytes packed, make_frame(kind, table, true));
  if (std::max<uint64_t>(table.size(), live_bytes()) <= expansion_limit(file_bytes + packed.size())) return packed;
  return make_frame(kind, table, false);
}

Result<Bytes> FrameWriter::device(const DeviceInfo& info, uint64_t file_bytes) const {
  Builder to;
  const auto driver = to.CreateString(info.kernel_driver), node = to.CreateString(info.node),
             compatible = to.CreateString(info.compatible);
  to.Finish(fb::CreateDevice(to, driver, node, compatible, pack_values(to, info.facts)));
  return frame(FrameKind::device, {to.GetBufferPointer(), to.GetSize()}, file_bytes);
}

Result<Bytes> FrameWriter::submission(const Submission& submission, uint64_t file_bytes) {
  if (size_of(submission) > kFrameLimitBytes)
    return error(ErrorCode::out_of_range, "a submission of {} bytes; a capture file takes at most {}",
                 size_of(submission), kFrameLimitBytes);
  Builder to;
  std::vector<Offset<fb::Buffer>> buffers;
  for (const BufferSnapshot& one : submission.buffers) {
    bool is_as_before = false;
    if (one.content == Content::bytes) {
      const XXH128_hash_t hash = XXH3_128bits(one.bytes.data(), one.bytes.size());
      const Known now{hash.low64, hash.high64, one.bytes.size()};
      Known& before = known_[one.handle];
      is_as_before = before == now;
      before = now;
    }
    buffers.push_back(pack_buffer(to, one, is_as_before));
  }
  keep_only(submission, known_);
  const auto parameters = pack_values(to, submission.parameters);
  const auto jobs = pack_jobs(to, submission.jobs);
  to.Finish(fb::CreateSubmission(to, parameters, jobs, to.CreateVector(buffers)));
  return frame(FrameKind::submission, {to.GetBufferPointer(), to.GetSize()}, file_bytes);
}

Result<DeviceInfo> FrameReader::device(const FrameHeader& header, std::span<const uint8_t> stored,
                                       uint64_t file_bytes) const {
  if (header.kind != FrameKind::device) return error(ErrorCode::malformed, "the first frame describes no device");
  Bytes table;
  SK_TRY_ASSIGN(const fb::Device* from, open_table<fb::Device>(header, stored, file_bytes, table));
  CopyBudget budget(table.size());
  DeviceInfo info{.kernel_driver = text(from->kernel_driver(), budget),
                  .node = text(from->node(), budget),
                  .compatible = text(from->compatible(), budget),
                  .facts = {}};
  info.facts = unpack_values<Fact>(from->facts(), budget);
  if (budget.is_spent()) return too_much_named();
  return info;
}

Result<Submission> FrameReader::submission(const FrameHeader& header, std::span<const uint8_t> stored,
                                           uint64_t file_bytes) {
  if (header.kind != FrameKind::submission) return error(ErrorCode::malformed, "it is not a submission");
  Bytes table;
  SK_TRY_ASSIGN(const fb::Submission* from, open_table<fb::Submission>(header, stored, file_bytes, table));
  CopyBudget budget(table.size());
  Submission out{.parameters = unpack_values<Parameter>(from->parameters(), budget)};
  out.jobs = unpack_jobs(from->jobs(), budget);
  const uint32_t count = from->buffers() == nullptr ? 0 : from->buffers()->size();
  std::set<uint32_t> handles;
  for (uint32_t i = 0; i < count && budget.take(kItemBytes); ++i) {
    const fb::Buffer& one = *from->buffers()->Get(i);
    const std::string where = fmt::format("buffer {}", one.handle());
    if (!handles.insert(one.handle()).second) return error(ErrorCode::malformed, "{} occurs twice", where);
    SK_TRY_ASSIGN(BufferSnapshot buffer, unpack_buffer(one).with_context(where));
    if (buffer.content == Content::bytes) {
      SK_TRY_ASSIGN(buffer.bytes, contents_of(one, known_, budget).with_context(where));
      if (buffer.bytes.size() > buffer.size_bytes)
        return error(ErrorCode::malformed, "{}: {} bytes in {}", where, buffer.bytes.size(), buffer.size_bytes);
      known_[buffer.handle] = buffer.bytes;
    }
    out.buffers.push_back(std::move(buffer));
  }
  if (budget.is_spent()) return too_much_named();
  keep_only(out, known_);
  uint64_t live = 0;
  for (const auto& [handle, bytes] : known_) live += bytes.size();
  if (live > expansion_limit(file_bytes))
    return error(ErrorCode::malformed, "holds {} bytes, more than the limit", live);
  return out;
}

}  // namespace skillet::capture
