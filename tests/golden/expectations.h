// Which outcome each golden case is expected to have, and why: tests/expectations/MODE-CHIP.txt.
//   # comment
//   SET/CASE  OUTCOME  [SUMMARY]  REASON...      `*` and `?` in SET/CASE stand for many cases; a line without them goes
//                                                first. A line of one case has the outcome's summary, where it has one
// Called by skillet_golden. Must not know: how outcomes come about.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::golden {

struct Outcome {
  std::string name;  // "set/case"
  std::string outcome;
  std::vector<std::string> details;  // why; the first is the most telling
  std::string summary{};             // short and always the same, so that a change within the outcome is seen; or empty
};

class Expectations {
 public:
  // `usual` is expected of every case that the file does not name. A file that is not there names none.
  static Result<Expectations> read(const std::string& path, std::string usual);

  const std::string& expected(const std::string& name) const;
  bool holds(const Outcome& one) const;
  // One line for each outcome that is not the expected one, in either direction.
  std::vector<std::string> check(const std::vector<Outcome>& outcomes) const;
  // The file's new text: lines that hold, comments and reasons stay; what changed says so; new lines stand at the end
  // with their first detail as the reason.
  std::string updated(const std::vector<Outcome>& outcomes) const;

 private:
  struct Line {
    std::string text;  // as it is in the file
    std::string name, outcome, summary, reason;
    bool is_pattern() const { return name.find_first_of("*?") != std::string::npos; }
  };
  const std::string& expected_of_kind(const std::string& name) const;  // by the patterns alone

  std::string path_, usual_;
  std::vector<Line> lines_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace skillet::golden
