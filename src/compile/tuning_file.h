// TuningFile: what was found to be best for the parts of a model on a chip, as text that people can read.
// Called by runtime/tuned_driver.h (uses it) and `skillet tune` (writes it).
// Must not know: how it was found, a vendor's anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::compile {

struct TunedPart {
  std::string graph;  // key of the part's graph and constants
  std::vector<std::string> switches;
  std::vector<npu::Choice> choices;
};

struct TuningFile {
  std::string chip, build;           // for which it was made; choices of another build may mean something else
  std::string model, device, found;  // for people: what was tuned, on what, and how it went
  std::vector<TunedPart> parts;
  std::string path;  // where it was read, for messages; it is not in the file

  const TunedPart* find(std::string_view graph) const;
};

std::string print(const TuningFile& file);
// Nothing in `text` is trusted. Error names the field and what is wrong with it.
Result<TuningFile> parse_tuning_file(std::string_view text);

}  // namespace skillet::compile
