// Inputs of `skillet run`: pictures, files, random values, or frames from standard input.
// Called by the verbs that run networks.
// Must not know: devices, sessions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "tools/tensors/picture.h"

namespace skillet::tools {

struct InputOptions {
  std::vector<std::string> images, inputs;
  std::optional<uint64_t> random_seed;
  std::string raw, size;     // "rgb24", "640x480"
  std::string float_pixels;  // one of kFloatPixels; empty: not given
  std::string_view pixels() const { return float_pixels.empty() ? kFloatPixels[0] : std::string_view(float_pixels); }
};

// Contents of all graph inputs for one inference.
struct InputSet {
  std::string name;
  std::string path;              // for a picture
  std::optional<Picture> frame;  // before conversion
  std::vector<Bytes> tensors;    // in Graph::inputs order
  bool is_picture() const { return !path.empty() || frame; }
};
// The picture in colour, for display: at most 1280 pixels per side; small ones are enlarged up to `smallest_px`.
Result<Picture> picture_of(const InputSet& set, int smallest_px);

class InputSource {
 public:
  // Reads and checks all inputs except frames.
  static Result<InputSource> create(const InputOptions& options, const ir::Graph& graph);
  bool is_stream() const { return frame_.width_px > 0; }
  // Names of all inputs; empty for frames.
  std::vector<std::string> names() const;
  // None after the last one.
  Result<std::optional<InputSet>> next();

 private:
  Result<std::optional<InputSet>> next_frame();
  std::vector<InputSet> sets_;
  size_t next_ = 0;
  Picture frame_;     // its size; empty: no frames
  ir::Tensor input_;  // the input for frames
  std::string pixels_;
};

// "'image' uint8 1x28x28x1: pictures resized ...": the source of values, for people.
std::string input_note(const InputOptions& options, const ir::Graph& graph);

}  // namespace skillet::tools
