#include "tools/tensors/calibration_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "tools/tensors/picture.h"
#include "tools/tensors/run_inputs.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

using Sets = std::vector<std::vector<Bytes>>;

constexpr size_t kHeldBack = 4;  // one in so many

bool is_array(const std::string& path) { return ending_of(path) == ".npz" || ending_of(path) == ".npy"; }

// Files of one kind: pictures, or arrays if there are no pictures.
Result<std::vector<std::string>> data_in(const std::string& folder) {
  SK_TRY_ASSIGN(std::vector<std::string> out, files_in(folder, {".png", ".jpg", ".jpeg", ".bmp", ".npz", ".npy"},
                                                       ".png, .jpg, .bmp, .npz or .npy file"));
  if (!std::ranges::all_of(out, is_array)) std::erase_if(out, is_array);
  return out;
}

// Keeps at most kMostInferences items, evenly spaced.
template <typename T>
void thin(std::vector<T>& items) {
  const size_t all = items.size();
  if (all <= kMostInferences) return;
  for (size_t i = 0; i < kMostInferences; ++i) {
    if (const size_t from = i * all / kMostInferences; from != i) items[i] = std::move(items[from]);
  }
  items.resize(kMostInferences);
}

Result<Sets> read_folder(const std::string& folder, const ir::Graph& graph, const std::string& float_pixels,
                         size_t& found) {
  SK_TRY_ASSIGN(std::vector<std::string> files, data_in(folder));
  found = files.size();
  thin(files);
  Sets out;
  for (const std::string& path : files) {
    InputOptions options;
    options.float_pixels = float_pixels;
    (is_array(path) ? options.inputs : options.images) = {path};
    SK_TRY_ASSIGN(InputSource source, InputSource::create(options, graph));
    SK_TRY_ASSIGN(std::optional<InputSet> set, source.next());
    out.push_back(std::move(set->tensors));
  }
  return out;
}

Result<Sets> read_arrays(const std::string& path, const ir::Graph& graph, size_t& found) {
  if (ending_of(path) == ".npy" && graph.inputs.size() != 1)
    return error(ErrorCode::invalid_argument, "{}: a .npy file needs a network with one input; this one has {}", path,
                 graph.inputs.size());
  const ArrayNames names = array_names(graph, graph.inputs);
  Sets out;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Tensor& input = graph.tensor(graph.inputs[i]);
    SK_TRY_ASSIGN(std::vector<Bytes> rows, read_tensor_rows(path, input, names, i));
    if (i > 0 && rows.size() != found)
      return error(ErrorCode::invalid_argument, "{}: {} inferences of input '{}', {} of '{}'", path, rows.size(),
                   input.name, found, graph.tensor(graph.inputs[0]).name);
    found = rows.size();
    thin(rows);
    out.resize(rows.size());
    for (size_t k = 0; k < rows.size(); ++k) out[k].push_back(std::move(rows[k]));
  }
  if (ending_of(path) == ".npz") SK_TRY(warn_of_other_arrays(path, graph));
  return out;
}

Result<void> check_finite(const ir::Graph& graph, const Sets& sets) {
  for (size_t k = 0; k < sets.size(); ++k) {
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const ir::Tensor& input = graph.tensor(graph.inputs[i]);
      if (input.dtype != ir::DType::float32) continue;
      for (size_t at = 0; at + sizeof(float) <= sets[k][i].size(); at += sizeof(float)) {
        if (!std::isfinite(load_le<float>(sets[k][i].data() + at)))
          return error(ErrorCode::invalid_argument,
                       "inference {}: element {} of input '{}' ({} {}) is not a finite number", k, at / sizeof(float),
                       input.name, ir::dtype_name(input.dtype), input.shape.to_string());
      }
    }
  }
  return {};
}

// Returns the number of inferences removed.
size_t drop_repeats(Sets& sets) {
  const size_t all = sets.size();
  std::set<std::vector<Bytes>> known;
  std::erase_if(sets, [&](const std::vector<Bytes>& one) { return !known.insert(one).second; });
  return all - sets.size();
}

// True if all pixels are equal; for tensors without rows and columns, all elements.
bool is_flat(const ir::Tensor& tensor, const Bytes& bytes) {
  const size_t elems = static_cast<size_t>(tensor.shape.elems());
  const size_t channels = tensor.shape.rank() == 4 ? static_cast<size_t>(tensor.shape.back(0)) : 1;
  if (elems <= channels || bytes.size() <= bytes.size() / elems * channels) return false;  // one pixel
  const size_t step = bytes.size() / elems * channels;
  return std::equal(bytes.begin() + static_cast<ptrdiff_t>(step), bytes.end(), bytes.begin());
}

void warn_of_flat_inputs(const std::string& place, const ir::Graph& graph, const Sets& sets) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Tensor& input = graph.tensor(graph.inputs[i]);
    if (!std::ranges::all_of(sets, [&](const std::vector<Bytes>& one) { return is_flat(input, one[i]); })) continue;
    log::warning(
        "{}: input '{}': every inference has one value everywhere; errors measured with it do not hold for typical "
        "inputs",
        place, input.name);
  }
}

}  // namespace

Result<CalibrationData> read_calibration_data(const std::string& place, const ir::Graph& graph,
                                              const std::string& float_pixels) {
  CalibrationData out;
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(place, ignored);
  if (!is_folder && !is_array(place))
    return error(ErrorCode::invalid_argument, "{}: must be a folder, or a .npz or .npy file", place);
  auto read = is_folder ? read_folder(place, graph, float_pixels, out.found) : read_arrays(place, graph, out.found);
  if (!read.ok()) return std::move(read).error();
  if (read->empty()) return error(ErrorCode::invalid_argument, "{}: holds no inference", place);
  SK_TRY(check_finite(graph, *read).with_context(place));
  out.repeats = drop_repeats(*read);
  warn_of_flat_inputs(place, graph, *read);
  for (size_t i = 0; i < read->size(); ++i)
    (i % kHeldBack == kHeldBack - 1 ? out.held : out.seen).push_back(std::move((*read)[i]));
  return out;
}

}  // namespace skillet::tools
