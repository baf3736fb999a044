#include "tools/tensors/run_inputs.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/interruptions.h"
#include "base/stop.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

Result<const ir::Tensor*> picture_input(const InputOptions& options, const ir::Graph& graph, std::string_view option) {
  if (graph.inputs.size() != 1)
    return error(ErrorCode::invalid_argument, "{} needs a network with one input; this one has {} (use --input)",
                 option, graph.inputs.size());
  const ir::Tensor& input = graph.tensor(graph.inputs[0]);
  if (const auto fits = check_image_input(input); !fits.ok())
    return error(fits.error().code, "{} (use --input or --random)", fits.error().message);
  if (!options.float_pixels.empty() && input.dtype != ir::DType::float32)
    return error(ErrorCode::invalid_argument, "--float-pixels needs a float32 input; '{}' is {}", input.name,
                 ir::dtype_name(input.dtype));
  return &input;
}

Result<std::vector<InputSet>> picture_inputs(const InputOptions& options, const ir::Graph& graph) {
  SK_TRY_ASSIGN(const ir::Tensor* input, picture_input(options, graph, "--image"));
  std::vector<InputSet> out;
  for (const std::string& path : options.images) {
    SK_TRY_ASSIGN(const Picture picture, load_picture(path, image_shape(input->shape).channels));
    SK_TRY_ASSIGN(Bytes bytes, to_tensor(picture, *input, options.pixels()));
    out.push_back({file_name(path), path, {}, {std::move(bytes)}});
  }
  return out;
}

// Reads one file for each input, or a .npz file for all of them.
Result<std::vector<InputSet>> file_inputs(const InputOptions& options, const ir::Graph& graph) {
  const bool is_archive = options.inputs.size() == 1 && options.inputs[0].ends_with(".npz");
  if (options.inputs.size() != graph.inputs.size() && !is_archive)
    return error(ErrorCode::invalid_argument, "{} --input files for a network with {} inputs", options.inputs.size(),
                 graph.inputs.size());
  const ArrayNames arrays = array_names(graph, graph.inputs);
  InputSet set;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& path = options.inputs[is_archive ? 0 : i];
    SK_TRY_ASSIGN(Bytes bytes, read_tensor_file(path, graph.tensor(graph.inputs[i]), arrays, i));
    if (i == 0 || !is_archive) set.name += (set.name.empty() ? "" : ", ") + file_name(path);
    set.tensors.push_back(std::move(bytes));
  }
  if (is_archive) SK_TRY(warn_of_other_arrays(options.inputs[0], graph));
  return std::vector<InputSet>{std::move(set)};
}

Result<std::vector<InputSet>> random_set(uint64_t seed, const ir::Graph& graph) {
  InputSet set{.name = fmt::format("random values, seed {}", seed), .path = {}, .frame = {}, .tensors = {}};
  SK_TRY_ASSIGN(set.tensors, random_inputs(seed, graph));
  return std::vector<InputSet>{std::move(set)};
}

// Parses "640x480" into the size of `out`.
bool parse_size(std::string_view text, Picture& out) {
  constexpr int kMaxPx = 16384;
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, out.width_px);
  if (width.ec != std::errc() || width.ptr == end || *width.ptr != 'x') return false;
  const auto height = std::from_chars(width.ptr + 1, end, out.height_px);
  return height.ec == std::errc() && height.ptr == end && out.width_px > 0 && out.width_px <= kMaxPx &&
         out.height_px > 0 && out.height_px <= kMaxPx && int64_t{out.width_px} * out.height_px <= kMaxPicturePixels;
}

// Reads standard input until `wanted` is full or the input ends.
Result<size_t> read_standard_input(std::span<uint8_t> wanted) {
  size_t done = 0;
  Interruptions interruptions;
  while (done < wanted.size()) {
    const ssize_t count = ::read(STDIN_FILENO, wanted.data() + done, wanted.size() - done);
    if (interruptions.again(count)) continue;
    if (count < 0) {
      const int number = errno;
      SK_TRY(check_stop());  // reports a signal that ends the program, instead of a pipe error
      return error(ErrorCode::io, "standard input: {}", std::strerror(number));
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

}  // namespace

Result<Picture> picture_of(const InputSet& set, int smallest_px) {
  constexpr int kLargestPx = 1280;
  if (set.frame) return fit(with_channels(*set.frame, 3), smallest_px, kLargestPx);
  SK_TRY_ASSIGN(const Picture picture, load_picture(set.path, 3));
  return fit(picture, smallest_px, kLargestPx);
}

Result<InputSource> InputSource::create(const InputOptions& options, const ir::Graph& graph) {
  InputSource out;
  if (!options.raw.empty()) {
    SK_TRY_ASSIGN(const ir::Tensor* input, picture_input(options, graph, "--raw"));
    const ImageShape image = image_shape(input->shape);
    out.frame_ = {
        .width_px = image.width, .height_px = image.height, .channels = options.raw == "gray" ? 1 : 3, .pixels = {}};
    if (!options.size.empty() && !parse_size(options.size, out.frame_))
      return error(ErrorCode::invalid_argument, "--size: must be WIDTHxHEIGHT, such as 640x480, not '{}'",
                   options.size);
    out.pixels_ = options.pixels();
    out.input_ = {.name = input->name, .dtype = input->dtype, .shape = input->shape, .quant = input->quant};
    return out;
  }
  auto sets = !options.images.empty()   ? picture_inputs(options, graph)
              : !options.inputs.empty() ? file_inputs(options, graph)
                                        : random_set(options.random_seed.value_or(1), graph);
  if (!sets.ok()) return std::move(sets).error();
  out.sets_ = std::move(sets).value();
  return out;
}

std::vector<std::string> InputSource::names() const {
  std::vector<std::string> out;
  for (const InputSet& set : sets_) out.push_back(set.name);
  return out;
}

Result<std::optional<InputSet>> InputSource::next() {
  if (is_stream()) return next_frame();
  if (next_ == sets_.size()) return std::optional<InputSet>();
  return std::optional<InputSet>(std::move(sets_[next_++]));
}

Result<std::optional<InputSet>> InputSource::next_frame() {
  Picture frame = frame_;
  frame.pixels.resize(static_cast<size_t>(frame.width_px) * frame.height_px * frame.channels);
  SK_TRY_ASSIGN(const size_t size, read_standard_input(frame.pixels));
  if (size == 0 && next_ > 0) return std::optional<InputSet>();
  if (size < frame.pixels.size())
    return error(ErrorCode::malformed, "standard input: frame {} has {} of {} bytes ({}x{}, {} a pixel)", next_, size,
                 frame.pixels.size(), frame.width_px, frame.height_px, frame.channels);
  SK_TRY_ASSIGN(Bytes bytes, to_tensor(with_channels(frame, image_shape(input_.shape).channels), input_, pixels_));
  InputSet out{.name = fmt::format("frame {}", next_++), .path = {}, .frame = std::move(frame), .tensors = {}};
  out.tensors.push_back(std::move(bytes));
  return std::optional<InputSet>(std::move(out));
}

std::string input_note(const InputOptions& options, const ir::Graph& graph) {
  std::string out;
  for (const ir::TensorId id : graph.inputs) {
    const ir::Tensor& input = graph.tensor(id);
    out += fmt::format("{}'{}' {} {}", out.empty() ? "" : ", ", input.name, ir::dtype_name(input.dtype),
                       input.shape.to_string());
  }
  if (!options.raw.empty())
    return out + ": frames " + describe_mapping(graph.tensor(graph.inputs[0]), options.pixels());
  if (!options.images.empty())
    return out + ": pictures " + describe_mapping(graph.tensor(graph.inputs[0]), options.pixels());
  if (!options.inputs.empty()) return out + ": from files";
  return out + (options.random_seed ? ": random values" : ": random values (give --image or --input for real ones)");
}

}  // namespace skillet::tools
