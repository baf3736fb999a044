#include "expectations.h"

#include <fnmatch.h>

#include <filesystem>
#include <sstream>

#include "base/bytes.h"

namespace skillet::golden {
namespace {

std::string format_line(const Outcome& one, const std::string& reason) {
  const std::string summary = one.summary.empty() ? "" : fmt::format("[{}] ", one.summary);
  return fmt::format("{:<31} {:<9} {}{}\n", one.name, one.outcome, summary, reason);
}

// Removes a leading "[SUMMARY] " from a reason and returns the summary.
std::string take_summary(std::string& reason) {
  const size_t end = reason.starts_with('[') ? reason.find("] ") : std::string::npos;
  if (end == std::string::npos) return {};
  std::string summary = reason.substr(1, end - 1);
  reason.erase(0, end + 2);
  return summary;
}

}  // namespace

Result<Expectations> Expectations::read(const std::string& path, std::string usual) {
  Expectations out;
  out.path_ = path;
  out.usual_ = std::move(usual);
  if (!std::filesystem::exists(path)) return out;
  SK_TRY_ASSIGN(const Bytes bytes, read_file(path));
  std::istringstream file(std::string(bytes.begin(), bytes.end()));
  Line line;
  for (int number = 1; std::getline(file, line.text); ++number, line = {}) {
    std::istringstream words(line.text);
    if (words >> line.name && line.name[0] != '#') {
      if (!(words >> line.outcome >> std::ws) || !std::getline(words, line.reason))
        return error(ErrorCode::malformed, "{}:{}: not a line of case, outcome and reason", path, number);
      line.summary = take_summary(line.reason);
      if (!out.by_name_.emplace(line.name, out.lines_.size()).second)
        return error(ErrorCode::malformed, "{}:{}: {} stands here twice", path, number, line.name);
    } else {
      line.name.clear();
    }
    out.lines_.push_back(line);
  }
  return out;
}

const std::string& Expectations::expected(const std::string& name) const {
  const auto exact = by_name_.find(name);
  return exact == by_name_.end() ? expected_of_kind(name) : lines_[exact->second].outcome;
}

// Lines for many cases have no summary, as each case has its own.
bool Expectations::holds(const Outcome& one) const {
  if (one.outcome != expected(one.name)) return false;
  const auto exact = by_name_.find(one.name);
  return exact == by_name_.end() || one.summary == lines_[exact->second].summary;
}

const std::string& Expectations::expected_of_kind(const std::string& name) const {
  for (const Line& line : lines_) {
    if (line.is_pattern() && ::fnmatch(line.name.c_str(), name.c_str(), FNM_PATHNAME) == 0) return line.outcome;
  }
  return usual_;
}

std::vector<std::string> Expectations::check(const std::vector<Outcome>& outcomes) const {
  std::vector<std::string> wrong;
  for (const Outcome& one : outcomes) {
    if (holds(one)) continue;
    const std::string& want = expected(one.name);
    const std::string expected_text =
        one.outcome == want ? fmt::format("another one than [{}]", one.summary) : "expected " + want;
    wrong.push_back(fmt::format("unexpected: {} is {}, {}{}{}", one.name, one.outcome, expected_text,
                                one.details.empty() ? "" : ": ", one.details.empty() ? "" : one.details[0]));
  }
  return wrong;
}

std::string Expectations::updated(const std::vector<Outcome>& outcomes) const {
  std::map<std::string, const Outcome*> changed;
  for (const Outcome& one : outcomes) {
    if (!holds(one)) changed[one.name] = &one;
  }
  std::string text;
  for (const Line& line : lines_) {
    const auto change = changed.find(line.name);
    if (change == changed.end()) {
      text += line.text + "\n";
      continue;
    }
    const Outcome& now = *change->second;
    if (now.outcome == line.outcome)
      text += format_line(now, line.reason);
    else if (now.outcome != expected_of_kind(line.name))
      text += format_line(now, fmt::format("CHANGED, was {}: {}", line.outcome, line.reason));
    changed.erase(change);
  }
  if (!changed.empty()) text += "\n# New: the reason is what was seen first, nobody has looked further.\n";
  for (const auto& [name, one] : changed) text += format_line(*one, one->details.empty() ? "?" : one->details[0]);
  return text;
}

}  // namespace skillet::golden
