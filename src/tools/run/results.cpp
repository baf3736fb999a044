#include "tools/run/results.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tools/run/scores.h"
#include "tools/show/text_table.h"
#include "tools/tensors/tensor_file.h"
#include "tools/tensors/zip_file.h"

namespace skillet::tools {
namespace {

bool is_file(const std::string& path) { return path.ends_with(".npy") || path.ends_with(".npz"); }

// |a - b|, exact also for 64-bit integers; NaN if only one is NaN, and for types without numbers.
double distance(const ir::Tensor& tensor, std::span<const uint8_t> a, std::span<const uint8_t> b, int64_t i) {
  const auto size = static_cast<size_t>(ir::dtype_bytes(tensor.dtype)), at = static_cast<size_t>(i) * size;
  if (std::memcmp(a.data() + at, b.data() + at, size) == 0) return 0;
  if (!has_numbers(tensor.dtype)) return NAN;
  const double x = raw_value(tensor, a, i), y = raw_value(tensor, b, i);
  if (ir::is_integer(tensor.dtype) && size == 8) {  // a double has too few digits
    const auto difference = load_le<uint64_t>(a.data() + at) - load_le<uint64_t>(b.data() + at);
    return std::max(std::abs(x - y), std::min(static_cast<double>(difference), static_cast<double>(-difference)));
  }
  return (std::isnan(x) && std::isnan(y)) || x == y ? 0 : std::abs(x - y);
}

std::string print_index(const ir::Shape& shape, int64_t at) {
  std::string out;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    out = fmt::format("{}{}{}", at % shape[i], out.empty() ? "" : ", ", out);
    at /= shape[i];
  }
  return "[" + out + "]";
}

}  // namespace

Result<ResultPlace> ResultPlace::create(std::string path, const ir::Graph& graph,
                                        std::span<const std::string> inferences) {
  ResultPlace out;
  if (path.ends_with(".npy") && graph.outputs.size() != 1)
    return error(ErrorCode::invalid_argument, "{}: the network has {} outputs; give a folder, or a .npz file", path,
                 graph.outputs.size());
  if (is_file(path) && inferences.size() != 1)
    return error(ErrorCode::invalid_argument, "{}: holds the outputs of one inference; give a folder for several",
                 path);
  out.path_ = std::move(path);
  out.has_folders_ = inferences.size() != 1;
  for (const ir::TensorId id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.dtype == ir::DType::variant) {
      const ir::OpId from = ir::producers(graph)[static_cast<size_t>(id)];
      return error(ErrorCode::unsupported,
                   "'{}': its size is unknown before the run{}: run the model with ONNX Runtime", tensor.name,
                   from < 0 ? "" : fmt::format(", as {} computes it", ir::op_name(graph.op(from))));
    }
    SK_TRY(npy_of(tensor, {}).ok() ? Result<void>() : npy_of(tensor, {}).error());
    out.outputs_.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .quant = tensor.quant});
  }
  out.arrays_ = array_names(graph, graph.outputs);
  std::vector<std::string> names;
  for (const std::string& name : inferences) names.push_back(std::filesystem::path(name).stem().string());
  out.names_ = file_keys(names);
  return out;
}

std::string ResultPlace::folder_of(size_t inference) const {
  if (!has_folders_) return path_;
  return path_ + "/" + (inference < names_.size() ? names_[inference] : fmt::format("frame{}", inference));
}

Result<void> ResultPlace::check() const {
  if (is_file(path_)) return check_place(path_);
  SK_TRY(has_folders_ ? check_folder(path_) : Result<void>());
  std::vector<std::string> files;
  for (const std::string& file : arrays_.files) files.push_back(file + ".npy");
  if (has_folders_ && names_.empty()) return check_files(folder_of(0), files);  // frames
  for (size_t i = 0; i < names_.size(); ++i) SK_TRY(check_files(folder_of(i), files));
  return {};
}

Result<void> ResultPlace::write(size_t inference, std::span<const Bytes> outputs) const {
  std::vector<ZipEntry> files;
  const std::vector<std::string>& names = path_.ends_with(".npz") ? arrays_.keys : arrays_.files;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    SK_TRY_ASSIGN(Bytes npy, npy_of(outputs_[i], outputs[i]));
    files.push_back({names[i] + ".npy", std::move(npy)});
  }
  if (path_.ends_with(".npy")) return write_file(path_, files[0].bytes);
  if (path_.ends_with(".npz")) {
    SK_TRY_ASSIGN(const Bytes archive, zip_of(files));
    return write_file(path_, archive);
  }
  const std::string folder = folder_of(inference);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return error(ErrorCode::io, "{}: {}", folder, failure.message());
  for (const ZipEntry& file : files) SK_TRY(write_file(folder + "/" + file.name, file.bytes));
  return {};
}

Result<std::vector<Bytes>> ResultPlace::read(size_t inference) const {
  std::vector<Bytes> out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::string path = is_file(path_) ? path_ : folder_of(inference) + "/" + arrays_.files[i] + ".npy";
    SK_TRY_INTO(out.emplace_back(), read_tensor_file(path, outputs_[i], arrays_, i, "output"));
  }
  return out;
}

Deviation deviation(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted,
                    double tolerance) {
  Deviation out{.differing = 0, .elems = tensor.shape.elems(), .worst = 0, .at = 0};
  for (int64_t i = 0; i < out.elems; ++i) {
    const double one = distance(tensor, got, wanted, i);
    if (!(one <= tolerance)) ++out.differing;
    if (std::isnan(out.worst) || !(one > out.worst || std::isnan(one))) continue;
    out.worst = one;
    out.at = i;
  }
  return out;
}

std::string describe(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted,
                     const Deviation& deviation, double tolerance) {
  return fmt::format("output '{}': {} of {} elements differ by more than {}, worst by {} at {}: {}, expected {}",
                     tensor.name, print_count(static_cast<uint64_t>(deviation.differing)),
                     print_count(static_cast<uint64_t>(deviation.elems)), tolerance, deviation.worst,
                     print_index(tensor.shape, deviation.at), raw_value(tensor, got, deviation.at),
                     raw_value(tensor, wanted, deviation.at));
}

}  // namespace skillet::tools
