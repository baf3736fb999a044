// The expected outcome of each golden case, with the reason: tests/expectations/MODE-CHIP.txt.
//   # comment
//   SET/CASE  OUTCOME  [SUMMARY]  REASON...      `*` and `?` in SET/CASE match many cases; a line without them goes
//                                                first. A line for one case has the outcome's summary, if there is one
// Called by skillet_golden. Must not know: how outcomes are computed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::golden {

struct Outcome {
  std::string name;  // "set/case"
  std::string outcome;
  std::vector<std::string> details;  // reasons; the most important first
  std::string summary{};             // short and reproducible, so that a change within the outcome shows; or empty
};

class Expectations {
 public:
  // `usual` is expected of every case that the file does not name. A missing file names none.
  static Result<Expectations> read(const std::string& path, std::string usual);

  const std::string& expected(const std::string& name) const;
  bool holds(const Outcome& one) const;
  // Returns one line for each unexpected outcome, better or worse.
  std::vector<std::string> check(const std::vector<Outcome>& outcomes) const;
  // Returns the file's new text: keeps valid lines, comments and reasons; marks changed lines; appends new lines with
  // their first detail as the reason.
  std::string updated(const std::vector<Outcome>& outcomes) const;

 private:
  struct Line {
    std::string text;  // as in the file
    std::string name, outcome, summary, reason;
    bool is_pattern() const { return name.find_first_of("*?") != std::string::npos; }
  };
  const std::string& expected_of_kind(const std::string& name) const;  // by the patterns alone

  std::string path_, usual_;
  std::vector<Line> lines_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace skillet::golden
