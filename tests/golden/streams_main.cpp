// skillet_streams: reads lines "NAME<tab>MODEL" from standard input; prints one JSON object per line: for every chip
// and tuning, every program of the model, as the device reads it. streams.py compares two such files.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "compile_model.h"
#include "streams.h"

namespace skillet::golden {
namespace {

void print(nlohmann::json row) { fmt::print("{}\n", row.dump()); }

void dump(const std::string& name, const std::string& path, const npu::Chip& chip, npu::Tuning tuning) {
  nlohmann::json row{{"model", name}, {"chip", chip.name}, {"tuning", npu::tuning_name(tuning)}};
  const auto model = compile_model(path, chip, {.tuning = tuning});
  if (!model.ok()) {
    row["error"] = model.error().message;
    return print(row);
  }
  for (size_t i = 0; i < model->parts.size(); ++i) {
    const CompiledPart& part = model->parts[i];
    nlohmann::json program = row;
    program["part"] = i;
    program["ops"] = part.ops;
    program["program"] = device_view(part.program, part.graph);
    print(std::move(program));
  }
}

}  // namespace
}  // namespace skillet::golden

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      fmt::print(stderr, "skillet_streams: '{}' is not NAME<tab>MODEL\n", line);
      return 2;
    }
    for (const skillet::npu::Driver* driver : skillet::npu::drivers()) {
      for (const skillet::npu::Chip& chip : driver->chips()) {
        for (const std::string_view tuning : skillet::npu::kTuningNames)
          skillet::golden::dump(line.substr(0, tab), line.substr(tab + 1), chip,
                                *skillet::npu::tuning_from_name(tuning));
      }
    }
  }
  return 0;
}
