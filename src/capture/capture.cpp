#include "capture/capture.h"

#include <algorithm>

#include "base/log.h"
#include "capture/frames.h"
#include "capture/reader.h"

namespace skillet::capture {
Result<Capture> read_all(Reader& reader) {
  Capture capture{.device = reader.device(), .submissions = {}};
  while (true) {
    SK_TRY_ASSIGN(std::optional<Submission> one, reader.next());
    if (!one) return capture;
    capture.submissions.push_back(std::move(*one));
  }
}

Result<Capture> read(const std::string& path) {
  SK_TRY_ASSIGN(Reader reader, Reader::open(path));
  if (!reader.cut_off().empty()) log::warning("{}", reader.cut_off());
  return read_all(reader).with_context(path);
}

Result<Capture> parse(std::span<const uint8_t> file) {
  SK_TRY_ASSIGN(Reader reader, Reader::parse(Bytes(file.begin(), file.end())));
  return read_all(reader);
}

Result<Bytes> serialise(const Capture& capture) {
  Bytes file = file_start();
  FrameWriter frames;
  SK_TRY_ASSIGN(Bytes frame, frames.device(capture.device, file.size()));
  file.insert(file.end(), frame.begin(), frame.end());
  for (const Submission& submission : capture.submissions) {
    SK_TRY_ASSIGN(frame, frames.submission(submission, file.size()));
    file.insert(file.end(), frame.begin(), frame.end());
  }
  return file;
}

Result<void> write(const Capture& capture, const std::string& path) {
  SK_TRY_ASSIGN(const Bytes file, serialise(capture).with_context(path));
  return write_file(path, file);
}

uint64_t DeviceInfo::fact(std::string_view name) const {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? 0 : found->value;
}

std::string print(const DeviceInfo& info) {
  std::string text;
  for (const Fact& one : info.facts) text += fmt::format("{}{} {:#x}", text.empty() ? "" : ", ", one.name, one.value);
  if (text.empty() && !info.compatible.empty()) text = fmt::format("compatible '{}'", info.compatible);
  return text;
}

bool is_placed(const Submission& submission, const BufferSnapshot& buffer) {
  const auto in_memory = [](const Commands& one) { return one.words.empty() && one.size_bytes != 0; };
  return buffer.size_bytes != 0 && (buffer.address != 0 || std::ranges::any_of(submission.jobs, [&](const Job& job) {
                                      return std::ranges::any_of(job.commands, in_memory);
                                    }));
}

std::vector<Job> one_list(std::vector<uint32_t> words) {
  std::vector<Job> jobs(1);
  jobs[0].commands.push_back({.words = std::move(words)});
  return jobs;
}

const BufferSnapshot* find_buffer(const Submission& submission, uint32_t handle) {
  const auto found = std::ranges::find(submission.buffers, handle, &BufferSnapshot::handle);
  return found == submission.buffers.end() ? nullptr : &*found;
}

Result<std::span<const uint32_t>> words_of(const Submission& submission) {
  if (submission.jobs.size() != 1 || submission.jobs[0].commands.size() != 1)
    return error(ErrorCode::malformed, "{} jobs are not one list of words", submission.jobs.size());
  const Commands& list = submission.jobs[0].commands[0];
  if (list.words.empty() && list.size_bytes != 0)
    return error(ErrorCode::malformed, "its commands are not inline words");
  return std::span<const uint32_t>(list.words);
}

void set_contents(BufferSnapshot& snapshot, std::span<const uint8_t> contents) {
  const auto last = std::find_if(contents.rbegin(), contents.rend(), [](uint8_t byte) { return byte != 0; });
  snapshot.bytes = Bytes(contents.begin(), last.base());
  snapshot.content = snapshot.bytes.empty() ? Content::zero : Content::bytes;
}

}  // namespace skillet::capture
