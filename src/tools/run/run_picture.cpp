#include "tools/run/run_picture.h"

#include <filesystem>

#include "tools/run/found_print.h"
#include "tools/show/canvas.h"
#include "tools/show/output.h"
#include "tools/show/paint.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

constexpr int kSmallestPx = 320;

bool is_file(const std::string& path) { return path.ends_with(".png"); }

}  // namespace

Result<Drawings> Drawings::create(bool show, std::string path, std::optional<double> threshold,
                                  const std::vector<std::string>& names) {
  Drawings out;
  if (is_file(path) && names.size() != 1)
    return error(ErrorCode::invalid_argument, "{}: holds one picture; give a folder for several", path);
  for (const std::string_view other : {".jpg", ".jpeg", ".bmp", ".gif", ".ppm"})
    if (path.ends_with(other))
      return error(ErrorCode::invalid_argument, "{}: pictures are written as .png, or to a folder", path);
  std::vector<std::string> stems;
  for (const std::string& name : names) stems.push_back(std::filesystem::path(name).stem().string());
  out.keys_ = file_keys(stems);
  std::vector<std::string> files;
  for (const std::string& key : out.keys_) files.push_back(key + ".png");
  if (!path.empty()) SK_TRY(is_file(path) ? check_place(path) : check_files(path, files));
  out.path_ = std::move(path);
  out.threshold_ = threshold;
  out.show_ = show;
  if (!show) return out;
  out.colours_ = terminal_colours();
  out.graphics_ = terminal_graphics();
  return out;
}

Result<void> Drawings::write(size_t index, const InputSet& inputs, const Inference& inference) const {
  SK_TRY_ASSIGN(Picture picture, picture_of(inputs, kSmallestPx));
  if (inference.found) paint(picture, *inference.found, threshold_);
  SK_TRY_ASSIGN(const Bytes png, png_of(picture));
  if (is_file(path_)) return write_file(path_, png);
  std::error_code failure;
  std::filesystem::create_directories(path_, failure);
  if (failure) return error(ErrorCode::io, "{}: {}", path_, failure.message());
  const std::string name = index < keys_.size() ? keys_[index] : fmt::format("frame{}", index);
  return write_file(fmt::format("{}/{}.png", path_, name), png);
}

Result<std::string> Drawings::in_colour(const Picture& picture) const {
  if (graphics_ == Graphics::none) return half_blocks(picture, terminal_size(), colours_);
  const Picture small = shrink_into(picture, terminal_size());
  if (graphics_ == Graphics::sixel) return sixel_text(small);
  SK_TRY_ASSIGN(const Bytes png, png_of(small));
  return kitty_text(png);
}

// Shows the picture. Classes are in the text beside it.
Result<void> Drawings::show(const InputSet& inputs, const ir::Tensor& input, Inference& inference) const {
  const bool has_colours = colours_ != Colours::none;
  SK_TRY_ASSIGN(Picture picture, picture_of(inputs, has_colours ? kSmallestPx : 0));
  if (inference.found && inference.found->task != Task::classes) paint(picture, *inference.found, threshold_);
  if (has_colours) {
    SK_TRY_ASSIGN(const std::string drawing, in_colour(picture));
    out_drawing(drawing);
    if (inference.found) out("{}: {}\n\n", inference.input, summary(*inference.found));
  } else {
    const ImageShape image = image_shape(input.shape);
    inference.drawing = draw(resize(picture, image.width, image.height), kDrawingColumns);
  }
  return {};
}

Result<void> Drawings::add(size_t index, const InputSet& inputs, const ir::Graph& graph, Inference& inference) const {
  if (!inputs.is_picture() || graph.inputs.empty()) return {};
  if (show_) SK_TRY(show(inputs, graph.tensor(graph.inputs[0]), inference));
  return path_.empty() ? Result<void>() : write(index, inputs, inference);
}

}  // namespace skillet::tools
