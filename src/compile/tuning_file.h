// TuningFile: the best choices found for the parts of a model on a chip, as readable text.
// Called by runtime/tuned_driver.h (uses it) and `skillet tune` (writes it).
// Must not know: how they were found, anything of one vendor.
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
  std::string chip, build;           // that it is for; another build's choices may mean something else
  std::string model, device, found;  // information: what was tuned, on which device, and the gain
  std::vector<TunedPart> parts;
  std::string path;  // where it was read, for messages; not part of the file

  const TunedPart* find(std::string_view graph) const;
};

std::string print(const TuningFile& file);
// `text` is untrusted. The error names the field and what is wrong with it.
Result<TuningFile> parse_tuning_file(std::string_view text);

}  // namespace skillet::compile
