#include "tools/jobs/edit_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "lab/compare/field_edit.h"
#include "tools/jobs/decoded.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kHelp =
    "# A capture as text. skillet replay, decode and diff take it as it is; skillet edit FILE -o CAPTURE makes a "
    "capture.\n"
    "# A line 'field PATH = VALUE' wins over its bits in the words: delete it to change these bits in a word.\n"
    "# A row of words begins with its byte offset in the list or buffer above it; rows of zeros are left out.\n";
constexpr size_t kRowBytes = 32;
constexpr uint64_t kMostBytes = 1ULL << 30;  // limit for a buffer or list with words in the text
constexpr std::string_view kContents[] = {"zero", "bytes", "unknown"};  // capture::Content

struct Flag {
  std::string_view name;
  bool capture::BufferSnapshot::*member;
};
constexpr Flag kFlags[] = {{"listed", &capture::BufferSnapshot::listed},
                           {"read", &capture::BufferSnapshot::read},
                           {"write", &capture::BufferSnapshot::write},
                           {"input", &capture::BufferSnapshot::holds_input}};

// ---- writing ----

std::string rows_of(std::span<const uint8_t> bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += kRowBytes) {
    uint32_t words[kRowBytes / 4] = {};
    const size_t size = std::min(kRowBytes, bytes.size() - at);
    std::memcpy(words, bytes.data() + at, size);
    const std::span<const uint32_t> used(words, (size + 3) / 4);
    if (std::ranges::any_of(used, [](uint32_t word) { return word != 0; }))
      out += fmt::format("  {:08x}: {:08x}\n", at, fmt::join(used, " "));
  }
  return out;
}

std::string buffer_text(const capture::BufferSnapshot& one) {
  std::string flags;
  for (const Flag& flag : kFlags) {
    if (one.*flag.member) flags += fmt::format(" {}", flag.name);
  }
  return fmt::format("buffer {} {:#x} {} {}{}\n{}", one.handle, one.address, one.size_bytes,
                     kContents[static_cast<size_t>(one.content)], flags, rows_of(one.bytes));
}

std::string jobs_text(const capture::Submission& submission) {
  std::string out;
  for (const capture::Job& job : submission.jobs) {
    out += "job\n";
    for (const capture::Commands& list : job.commands)
      out += fmt::format("list {} {:#x} {}\n{}", list.words.size(), list.address, list.size_bytes,
                         rows_of(as_bytes(list.words)));
  }
  return out;
}

Result<std::string> submission_text(const npu::Driver& driver, const npu::Chip& chip,
                                    const capture::Submission& submission) {
  std::string out;
  SK_TRY_ASSIGN(const auto fields, npu::field_values(driver, chip, submission));
  for (const npu::FieldValue& one : fields) out += fmt::format("field {} = {}\n", one.path, one.text);
  for (const capture::Parameter& one : submission.parameters)
    out += fmt::format("parameter {} {}\n", one.value, one.name);
  out += jobs_text(submission);
  for (const capture::BufferSnapshot& one : submission.buffers) out += buffer_text(one);
  return out;
}

// Names come from the capture: refuses names that cannot be read back from their line.
Result<void> check_names(const capture::DeviceInfo& device, const capture::Submission& submission) {
  std::vector<std::string> names = {device.kernel_driver, device.node, device.compatible};
  for (const capture::Fact& one : device.facts) names.push_back(one.name);
  for (const capture::Parameter& one : submission.parameters) names.push_back(one.name);
  for (const std::string& one : names) {
    if (printable(one) != one || one.starts_with(' ') || one.ends_with(' '))
      return error(ErrorCode::unsupported, "the name '{}' is not allowed in a line", printable(one));
  }
  return {};
}

std::string device_text(const capture::DeviceInfo& device) {
  std::string out =
      fmt::format("device {}\nnode {}\ncompatible {}\n", device.kernel_driver, device.node, device.compatible);
  for (const capture::Fact& one : device.facts) out += fmt::format("fact {} {}\n", one.value, one.name);
  return out;
}

// ---- reading ----

// Takes words from the start of a line.
class Line {
 public:
  Line(std::string_view text, size_t number) : rest_(text), number_(number) { skip(); }
  bool is_empty() const { return rest_.empty() || rest_[0] == '#'; }
  bool is_end() const { return rest_.empty(); }
  size_t number() const { return number_; }
  std::string_view word() {
    const std::string_view out = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_.remove_prefix(out.size());
    skip();
    return out;
  }
  std::string_view rest() { return std::exchange(rest_, {}); }
  Result<uint64_t> number(std::string_view what, uint64_t limit = UINT64_MAX) { return parse(word(), what, 10, limit); }
  static Result<uint64_t> parse(std::string_view text, std::string_view what, int base, uint64_t limit) {
    if (base == 10 && text.starts_with("0x")) {
      text.remove_prefix(2);
      base = 16;
    }
    uint64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (failure == std::errc::result_out_of_range || (failure == std::errc() && value > limit))
      return error(ErrorCode::malformed, "{}: '{}' is too large", what, printable(text));
    if (failure != std::errc() || end != text.data() + text.size() || text.empty())
      return error(ErrorCode::malformed, "{}: '{}' is no number", what, printable(text));
    return value;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
    while (!rest_.empty() && (rest_.back() == ' ' || rest_.back() == '\t' || rest_.back() == '\r'))
      rest_.remove_suffix(1);
  }
  std::string_view rest_;
  size_t number_;
};

class Parser {
 public:
  explicit Parser(std::string chip) : chip_name_(std::move(chip)) {}

  Result<capture::Capture> parse(std::string_view text) {
    size_t number = 0;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      Line words(line, ++number);
      if (words.is_empty()) continue;
      SK_TRY_IN_CONTEXT(statement(words), fmt::format("line {}", number));
    }
    SK_TRY(end_submission());
    if (out_.device.kernel_driver.empty()) return error(ErrorCode::malformed, "no line 'device'");
    return std::move(out_);
  }

 private:
  struct Keyword {
    std::string_view name;
    Result<void> (Parser::*read)(Line&);
    bool is_of_submission;
  };

  Result<void> statement(Line& line) {
    static constexpr Keyword kKeywords[] = {{"device", &Parser::device, false},
                                            {"node", &Parser::node, false},
                                            {"compatible", &Parser::compatible, false},
                                            {"fact", &Parser::fact, false},
                                            {"submission", &Parser::begin_submission, false},
                                            {"parameter", &Parser::parameter, true},
                                            {"job", &Parser::job, true},
                                            {"list", &Parser::list, true},
                                            {"buffer", &Parser::buffer, true},
                                            {"field", &Parser::field, true}};
    const std::string_view word = line.word();
    if (word.ends_with(':')) return row(word.substr(0, word.size() - 1), line);
    const auto* const keyword = std::ranges::find(kKeywords, std::end(kKeywords), word, &Keyword::name);
    if (keyword == std::end(kKeywords))
      return error(ErrorCode::malformed, "no line of such a text begins with '{}'", printable(word));
    if (keyword->is_of_submission && out_.submissions.empty())
      return error(ErrorCode::malformed, "'{}' before the first 'submission'", word);
    SK_TRY_IN_CONTEXT((this->*keyword->read)(line), std::string(word));
    if (line.is_end()) return {};
    return error(ErrorCode::malformed, "{}: '{}' is one word too many", word, printable(line.word()));
  }

  capture::Submission& submission() { return out_.submissions.back(); }

  static Result<void> take(std::string& text, Line& line) {
    text = line.rest();
    return {};
  }
  Result<void> device(Line& line) { return take(out_.device.kernel_driver, line); }
  Result<void> node(Line& line) { return take(out_.device.node, line); }
  Result<void> compatible(Line& line) { return take(out_.device.compatible, line); }
  Result<void> fact(Line& line) {
    SK_TRY_ASSIGN(const uint64_t value, line.number("value"));
    out_.device.facts.push_back({std::string(line.rest()), value});
    return {};
  }
  Result<void> parameter(Line& line) {
    SK_TRY_ASSIGN(const uint64_t value, line.number("value"));
    submission().parameters.push_back({std::string(line.rest()), value});
    return {};
  }

  Result<void> begin_submission(Line& line) {
    SK_TRY_ASSIGN(const uint64_t index, line.number("number"));
    if (index != out_.submissions.size())
      return error(ErrorCode::malformed, "{}: the next number is {}", index, out_.submissions.size());
    SK_TRY(end_submission());
    out_.submissions.emplace_back();
    return {};
  }

  Result<void> job(Line& /*line*/) {
    close();
    if (!submission().buffers.empty()) return error(ErrorCode::malformed, "it must come before the buffers");
    submission().jobs.emplace_back();
    return {};
  }

  Result<void> list(Line& line) {
    close();
    if (submission().jobs.empty() || !submission().buffers.empty())
      return error(ErrorCode::malformed, "it must come after a 'job' and before the buffers");
    SK_TRY_ASSIGN(const uint64_t words, line.number("words", kMostBytes / 4));
    capture::Commands list;
    SK_TRY_ASSIGN(list.address, line.number("address"));
    SK_TRY_ASSIGN(list.size_bytes, line.number("bytes"));
    submission().jobs.back().commands.push_back(std::move(list));
    begin_rows(words * 4);
    return {};
  }

  Result<void> buffer(Line& line) {
    close();
    capture::BufferSnapshot one;
    SK_TRY_ASSIGN(const uint64_t handle, line.number("handle", UINT32_MAX));
    one.handle = static_cast<uint32_t>(handle);
    SK_TRY_ASSIGN(one.address, line.number("address"));
    SK_TRY_ASSIGN(one.size_bytes, line.number("bytes"));
    if (one.size_bytes > UINT64_MAX - one.address)
      return error(ErrorCode::malformed, "{} bytes at {:#x}: they end beyond 64 bits", one.size_bytes, one.address);
    if (capture::find_buffer(submission(), one.handle) != nullptr)
      return error(ErrorCode::malformed, "{} occurs twice", handle);
    SK_TRY(contents(line.word(), one));
    while (!line.is_end()) {
      const std::string_view name = line.word();
      const auto* const flag = std::ranges::find(kFlags, name, &Flag::name);
      if (flag == std::end(kFlags))
        return error(ErrorCode::malformed, "'{}' is not one of listed, read, write, input", printable(name));
      if (one.*flag->member) return error(ErrorCode::malformed, "'{}' occurs twice", name);
      one.*flag->member = true;
    }
    submission().buffers.push_back(std::move(one));
    return {};
  }

  Result<void> contents(std::string_view word, capture::BufferSnapshot& one) {
    const auto* const name = std::ranges::find(kContents, word);
    if (name == std::end(kContents))
      return error(ErrorCode::malformed, "contents '{}' are not one of zero, bytes, unknown", printable(word));
    one.content = static_cast<capture::Content>(name - kContents);
    if (one.content == capture::Content::bytes) begin_rows(one.size_bytes);
    return {};
  }

  Result<void> row(std::string_view offset, Line& line) {
    if (!has_rows_) return error(ErrorCode::malformed, "words that belong to no list and to no buffer with bytes");
    SK_TRY_ASSIGN(uint64_t at, Line::parse(offset, "offset", 16, kMostBytes));
    if (at % 4 != 0) return error(ErrorCode::malformed, "offset {:#x}: a word begins at a multiple of 4", at);
    while (!line.is_end()) {
      SK_TRY_ASSIGN(const uint64_t value, Line::parse(line.word(), "word", 16, UINT32_MAX));
      for (size_t i = 0; i < 4; ++i, ++at) SK_TRY(put(at, static_cast<uint8_t>(value >> 8 * i)));
    }
    return {};
  }
  // A buffer may end inside a word: the rest of the word is 0.
  Result<void> put(uint64_t at, uint8_t byte) {
    if (at >= room_ && byte != 0)
      return error(ErrorCode::malformed, "byte {} is beyond the end: there are {}", at, room_);
    if (at >= room_) return {};
    if (at >= rows_.size()) rows_.resize(std::max<size_t>(at + 1, std::min<uint64_t>(room_, rows_.size() * 3 / 2)));
    rows_[at] = byte;
    return {};
  }

  Result<void> field(Line& line) {
    const std::string_view text = line.rest();
    const size_t equals = text.find(" = ");
    if (equals == std::string_view::npos) return error(ErrorCode::malformed, "must be PATH = VALUE");
    npu::FieldValue one{std::string(text.substr(0, equals)), std::string(text.substr(equals + 3))};
    const auto [first, is_new] = field_lines_.emplace(one.path, line.number());
    if (!is_new) return error(ErrorCode::malformed, "{}: line {} sets it already", printable(one.path), first->second);
    fields_.push_back(std::move(one));
    return {};
  }

  void begin_rows(uint64_t room) {
    has_rows_ = true;
    room_ = room;
    rows_.clear();
  }
  // Stores the rows in the last list or buffer.
  void close() {
    if (!has_rows_) return;
    has_rows_ = false;
    if (submission().buffers.empty()) {
      std::vector<uint32_t>& words = submission().jobs.back().commands.back().words;
      rows_.resize(room_);
      words.resize(room_ / 4);
      if (room_ != 0) std::memcpy(words.data(), rows_.data(), room_);
      return;
    }
    capture::BufferSnapshot& last = submission().buffers.back();
    capture::set_contents(last, rows_);
    last.content = capture::Content::bytes;
  }

  Result<void> end_submission() {
    if (out_.submissions.empty()) return {};
    close();
    const Result<void> done = set_fields();
    fields_.clear();
    field_lines_.clear();
    return done;
  }

  Result<void> set_fields() {
    if (fields_.empty()) return {};
    if (submission().jobs.empty())
      return error(ErrorCode::malformed, "line {}: submission {} has fields and no 'job'",
                   field_lines_[fields_[0].path], out_.submissions.size() - 1);
    SK_TRY_ASSIGN(const npu::Chip chip, chip_of(out_.device, chip_name_));
    SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
    size_t at = fields_.size();
    Result<void> done = npu::set_fields(*driver, chip, submission(), fields_, at);
    return std::move(done).with_context(at < fields_.size()
                                            ? fmt::format("line {}", field_lines_[fields_[at].path])
                                            : fmt::format("submission {}", out_.submissions.size() - 1));
  }

  std::string chip_name_;
  capture::Capture out_;
  std::vector<npu::FieldValue> fields_;
  std::map<std::string, size_t> field_lines_;
  bool has_rows_ = false;
  uint64_t room_ = 0;
  Bytes rows_;
};

}  // namespace

namespace {

std::string difference_of(const capture::Submission& a, const capture::Submission& b) {
  if (a.parameters != b.parameters) return "its parameters";
  if (a.jobs != b.jobs) return "the words of its lists";
  for (size_t i = 0; i < std::min(a.buffers.size(), b.buffers.size()); ++i) {
    if (a.buffers[i] != b.buffers[i]) return fmt::format("buffer {}", a.buffers[i].handle);
  }
  return a.buffers.size() == b.buffers.size() ? "" : "its buffers";
}

// Reads the text back before it is written: an error if it does not give the same submission.
Result<void> check_text(const std::string& text, const capture::DeviceInfo& device, const std::string& chip_name,
                        const capture::Submission& submission) {
  SK_TRY_ASSIGN(const capture::Capture back,
                parse_edit_text(fmt::format("{}submission 0\n{}", device_text(device), text), chip_name)
                    .with_context("it cannot be a text"));
  if (!(back.device == device)) return error(ErrorCode::unsupported, "it cannot be a text: the device would change");
  const std::string differs = difference_of(submission, back.submissions.at(0));
  if (differs.empty()) return {};
  return error(ErrorCode::unsupported, "it cannot be a text: {} would change", differs);
}

}  // namespace

Result<std::string> edit_text(capture::Reader& reader, const std::string& chip_name) {
  SK_TRY_ASSIGN(const npu::Chip chip, chip_of(reader.device(), chip_name));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  std::string out = fmt::format("{}\n{}{}", kEditMark, kHelp, device_text(reader.device()));
  while (true) {
    SK_TRY_ASSIGN(const auto one, reader.next());
    if (!one) return out;
    SK_TRY(check_names(reader.device(), *one));
    SK_TRY_ASSIGN(const std::string text,
                  submission_text(*driver, chip, *one).with_context(fmt::format("submission {}", reader.index())));
    SK_TRY(
        check_text(text, reader.device(), chip_name, *one).with_context(fmt::format("submission {}", reader.index())));
    out += fmt::format("\nsubmission {}\n{}", reader.index(), text);
    if (out.size() > kMostBytes)
      return error(ErrorCode::unsupported, "the text has more than {} bytes at submission {}", kMostBytes,
                   reader.index());
  }
}

Result<capture::Capture> parse_edit_text(std::string_view text, const std::string& chip) {
  return Parser(chip).parse(text);
}

bool is_edit_text(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto start = read_file_start(path, kEditMark.size());
  return start.ok() && std::ranges::equal(*start, kEditMark);
}

Result<capture::Reader> open_jobs(const std::string& path, const std::string& chip) {
  if (!is_edit_text(path)) return capture::Reader::open(path);
  SK_TRY_ASSIGN(const Bytes file, read_file(path));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  SK_TRY_ASSIGN(capture::Capture parsed, parse_edit_text(text, chip).with_context(path));
  return capture::Reader::of(std::move(parsed));
}

}  // namespace skillet::tools
