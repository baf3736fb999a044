// Sizes of inputs from the caller.
#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "base/parse_number.h"
#include "base/text.h"
#include "frontend/onnx/file.h"

namespace skillet::onnx {
namespace {

std::string text_of(const std::vector<int64_t>& dims) {
  std::string out;
  for (const int64_t dim : dims) out += (out.empty() ? "" : "x") + (dim < 0 ? "?" : std::to_string(dim));
  return out;
}

// An example for a message: sizes of the file, and usual ones of a picture for the unknown. Channels come last if the
// file says how many come last, and not how many come first.
std::string example_of(std::vector<int64_t> dims) {
  if (dims.size() != 4) return text_of(dims) + ", with a number for each ?";
  constexpr std::array<int64_t, 4> kChannelsFirst = {1, 3, 224, 224}, kChannelsLast = {1, 224, 224, 3};
  const std::array<int64_t, 4>& usual = dims[1] < 0 && dims[3] >= 0 ? kChannelsLast : kChannelsFirst;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0) dims[i] = usual[i];
  return text_of(dims);
}

Result<std::vector<int64_t>> parse(const std::string& text) {
  std::vector<int64_t> dims;
  std::istringstream all(text);
  for (std::string dim; std::getline(all, dim, 'x');) {
    const auto value = parse_number<int32_t>(dim);
    if (!value || *value < 1) return error(ErrorCode::invalid_argument, "'{}' is no size", printable(dim));
    dims.push_back(*value);
  }
  if (text.ends_with('x')) return error(ErrorCode::invalid_argument, "it ends with an x");
  return dims;
}

Result<int> set_input_shape(ModelFile& file, const std::string& text) {
  const size_t mark = text.rfind('=');
  const std::string name = mark == std::string::npos ? "" : text.substr(0, mark);
  const auto context = fmt::format("input shape '{}'", printable(text));
  const auto is_named = [&](int id) { return name.empty() || file.model.value(id).name == name; };
  const auto found = std::ranges::find_if(file.inputs, is_named);
  if (found == file.inputs.end() || (name.empty() && file.inputs.size() > 1)) {
    std::vector<std::string> names;
    for (const int id : file.inputs) names.push_back(printable(file.model.value(id).name));
    return error(ErrorCode::invalid_argument, "{}: NAME=SHAPE with one of {}", context, fmt::join(names, ", "));
  }
  auto dims = parse(mark == std::string::npos ? text : text.substr(mark + 1));
  if (!dims.ok()) return std::move(dims).error().with_context(context);
  Value& input = file.model.values[static_cast<size_t>(*found)];
  if (dims->size() != input.dims->size())
    return error(ErrorCode::invalid_argument, "{}: '{}' is {}, of {} sizes", context, printable(input.name),
                 text_of(*input.dims), input.dims->size());
  input.dims = *dims;
  return *found;
}

}  // namespace

Result<void> set_input_shapes(ModelFile& file, const std::vector<std::string>& shapes) {
  for (const std::string& text : shapes) {
    const auto set = set_input_shape(file, text);
    if (!set.ok()) return set.error();
  }
  for (const int id : file.inputs) {
    Value& input = file.model.values[static_cast<size_t>(id)];
    std::vector<int64_t>& dims = *input.dims;
    if (!dims.empty() && dims[0] < 0) dims[0] = 1;  // the batch
    if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 0; }))
      return error(ErrorCode::unsupported, "input '{}' has free sizes, {}; give them: --input-shape {}={}",
                   printable(input.name), text_of(dims), printable(input.name), example_of(dims));
  }
  return {};
}

}  // namespace skillet::onnx
