// Shows results of `skillet run` on pictures: on the terminal (--show) and as PNG files (--draw).
// Called by run.cpp.
// Must not know: how a network runs.
#pragma once

#include <string>
#include <vector>

#include "tools/run/run_result.h"
#include "tools/show/terminal.h"
#include "tools/show/terminal_graphics.h"
#include "tools/tensors/run_inputs.h"

namespace skillet::tools {

class Drawings {
 public:
  // `path`: FILE.png for one picture, else a folder; empty: writes nothing. `names`: names of the inputs; empty:
  // frames. Error: the path is not writable.
  static Result<Drawings> create(bool show, std::string path, std::optional<double> threshold,
                                 const std::vector<std::string>& names);
  // True if drawings go to files, so that missing results are an error.
  bool writes() const { return !path_.empty(); }
  // Writes the file. With colours shows the picture at once; else adds rows of characters to `inference`.
  Result<void> add(size_t index, const InputSet& inputs, const ir::Graph& graph, Inference& inference) const;

 private:
  Result<void> write(size_t index, const InputSet& inputs, const Inference& inference) const;
  Result<std::string> in_colour(const Picture& picture) const;
  Result<void> show(const InputSet& inputs, const ir::Tensor& input, Inference& inference) const;
  std::string path_;
  std::vector<std::string> keys_;
  std::optional<double> threshold_;
  bool show_ = false;
  Colours colours_ = Colours::none;
  Graphics graphics_ = Graphics::none;
};

}  // namespace skillet::tools
