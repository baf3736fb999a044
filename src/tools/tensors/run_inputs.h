// What `skillet run` feeds a network with: pictures, files, random values, or frames from standard input.
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
  std::string float_pixels;  // of kFloatPixels; empty: not given
  std::string_view pixels() const { return float_pixels.empty() ? kFloatPixels[0] : std::string_view(float_pixels); }
};

// The bytes of all graph inputs for one inference.
struct InputSet {
  std::string name;
  std::string path;              // of a picture
  std::optional<Picture> frame;  // as it came
  std::vector<Bytes> tensors;    // in Graph::inputs order
  bool is_picture() const { return !path.empty() || frame; }
};
// The picture again, in colour, for people: at most 1280 pixels on a side; small ones enlarged up to `smallest_px`.
Result<Picture> picture_of(const InputSet& set, int smallest_px);

class InputSource {
 public:
  // All but frames are read, and checked, here.
  static Result<InputSource> create(const InputOptions& options, const ir::Graph& graph);
  bool is_stream() const { return frame_.width_px > 0; }
  // Of what there is to come; none for frames.
  std::vector<std::string> names() const;
  // Nothing after the last one.
  Result<std::optional<InputSet>> next();

 private:
  Result<std::optional<InputSet>> next_frame();
  std::vector<InputSet> sets_;
  size_t next_ = 0;
  Picture frame_;     // its size; empty where no frames come
  ir::Tensor input_;  // that frames are for
  std::string pixels_;
};

// "'image' uint8 1x28x28x1: pictures resized ...": where values come from, for people.
std::string input_note(const InputOptions& options, const ir::Graph& graph);

}  // namespace skillet::tools
