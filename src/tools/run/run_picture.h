// What `skillet run` shows of pictures: on the terminal (--show) and as PNG files (--draw).
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
  // `path`: FILE.png for one picture, else a folder; empty: nothing is written. `names`: of the inputs to come; none:
  // frames. Error when it cannot be written to.
  static Result<Drawings> create(bool show, std::string path, std::optional<double> threshold,
                                 const std::vector<std::string>& names);
  // Whether what the network found is wanted, and not only nice to have.
  bool writes() const { return !path_.empty(); }
  // Writes the file; in colour, shows the picture at once, else `inference` gets rows of characters.
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
