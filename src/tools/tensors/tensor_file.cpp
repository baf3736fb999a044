#include "tools/tensors/tensor_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "tools/run/scores.h"
#include "tools/tensors/zip_file.h"

namespace skillet::tools {
namespace {

// NumPy's name of an element type; empty if it has none.
std::string_view numpy_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::uint16: return "<u2";
    case ir::DType::uint32: return "<u4";
    case ir::DType::uint64: return "<u8";
    case ir::DType::float16: return "<f2";
    case ir::DType::float64: return "<f8";
    case ir::DType::complex64: return "<c8";
    case ir::DType::complex128: return "<c16";
    case ir::DType::uint8: return "|u1";
    case ir::DType::int8: return "|i1";
    case ir::DType::boolean: return "|b1";
    case ir::DType::int16: return "<i2";
    case ir::DType::int32: return "<i4";
    case ir::DType::int64: return "<i8";
    case ir::DType::float32: return "<f4";
    default: return {};
  }
}

// Text after 'key': in the header's Python dictionary.
std::optional<std::string_view> value_after(std::string_view header, std::string_view key) {
  size_t at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find_first_not_of(' ', at + key.size());
  if (at == std::string_view::npos || header[at] != ':') return std::nullopt;
  return header.substr(std::min(header.find_first_not_of(' ', at + 1), header.size()));
}

// A quoted text; none if it is another value, such as a list of fields.
std::optional<std::string_view> quoted_value(std::string_view header, std::string_view key) {
  const std::optional<std::string_view> value = value_after(header, key);
  if (!value || !value->starts_with('\'')) return std::nullopt;
  const size_t end = value->find('\'', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return value->substr(1, end - 1);
}

// The tuple after 'shape':, such as (1, 28, 28, 1); none if it is no tuple.
std::optional<ir::Shape> shape_value(std::string_view header) {
  const size_t at = header.find("'shape'");
  const size_t open = at == std::string_view::npos ? at : header.find('(', at);
  const size_t close = open == std::string_view::npos ? open : header.find(')', open);
  if (close == std::string_view::npos) return std::nullopt;
  ir::Shape shape;
  for (std::string_view rest = header.substr(open + 1, close - open - 1); !rest.empty();) {
    const size_t digits = rest.find_first_not_of(" ,");
    if (digits == std::string_view::npos) break;
    rest.remove_prefix(digits);
    int32_t value = 0;
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (failure != std::errc() || value < 0) return std::nullopt;
    shape.dims.push_back(value);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  return shape;
}

// Many programs leave out leading ones, such as a batch of one, when they write arrays.
std::span<const int32_t> without_leading_ones(const ir::Shape& shape) {
  const auto first = std::ranges::find_if(shape.dims, [](int32_t dim) { return dim != 1; });
  return {first, shape.dims.end()};
}

// A repeated key is an error: programs differ in which value they use.
Result<void> check_keys(std::string_view header) {
  for (const std::string_view key : {"descr", "fortran_order", "shape"}) {
    size_t count = 0;
    for (const char quote : {'\'', '"'}) {
      const std::string text = fmt::format("{0}{1}{0}", quote, key);
      for (size_t at = header.find(text); at != std::string_view::npos; at = header.find(text, at + 1)) ++count;
    }
    if (count > 1) return error(ErrorCode::malformed, ".npy header with '{}' more than once", key);
  }
  return {};
}

struct NpyFile {
  std::string_view header;
  std::span<const uint8_t> data;
};

Result<NpyFile> split_npy(std::span<const uint8_t> file) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (file.size() < 12 || !std::equal(kMagic.begin(), kMagic.end(), file.begin(),
                                      [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }))
    return error(ErrorCode::malformed, "not a .npy file");
  if (file[6] < 1 || file[6] > 3 || file[7] != 0)
    return error(ErrorCode::malformed, ".npy file of version {}.{}, which is not known", file[6], file[7]);
  const size_t prefix = file[6] == 1 ? 10 : 12;
  const size_t header_size = file[6] == 1 ? load_le<uint16_t>(file.data() + 8) : load_le<uint32_t>(file.data() + 8);
  if (header_size > file.size() - prefix) return error(ErrorCode::malformed, ".npy header is truncated");
  return NpyFile{{reinterpret_cast<const char*>(file.data()) + prefix, header_size},
                 file.subspan(prefix + header_size)};
}

// Limit of a header: more than NumPy ever writes, but small enough for untrusted archives.
constexpr uint64_t kMaxHeaderBytes = 1 << 16;

std::string_view array_name(const ZipMember& member) {
  std::string_view name = member.name;
  if (name.ends_with(".npy")) name.remove_suffix(4);
  return name;
}
bool is_named(const ZipMember& member, std::string_view array) { return array_name(member) == array; }

// Example: ": 'a', 'b'".
std::string first_names(std::span<const ZipMember> members) {
  constexpr size_t kMost = 4;
  std::string out;
  for (const ZipMember& member : members.first(std::min(members.size(), kMost)))
    out += fmt::format("{}'{}'", out.empty() ? ": " : ", ", array_name(member));
  return members.size() > kMost ? out + ", ..." : out;
}

const ZipMember* find_array(std::span<const ZipMember> members, std::string_view name) {
  const auto found = std::ranges::find_if(members, [&](const ZipMember& member) { return is_named(member, name); });
  return found == members.end() ? nullptr : &*found;
}

// The array for each tensor; null: none. If all arrays have the names that we write, uses those. Else finds each by the
// tensor's name, by its key or file name, or by its position, as numpy.savez names unnamed arrays. No array is used for
// two tensors, and tensors' own names have priority.
std::vector<const ZipMember*> find_arrays(std::span<const ZipMember> members, const ArrayNames& arrays) {
  std::vector<const ZipMember*> out;
  for (const std::string& key : arrays.keys) out.push_back(find_array(members, key));
  if (std::ranges::find(out, nullptr) == out.end()) return out;
  std::ranges::fill(out, nullptr);
  std::vector<std::string> places;
  for (size_t i = 0; i < out.size(); ++i) places.push_back(fmt::format("arr_{}", i));
  for (const std::vector<std::string>* const names :
       {&arrays.names, &arrays.keys, &arrays.files, &std::as_const(places)}) {
    for (size_t i = 0; i < out.size(); ++i) {
      const ZipMember* const one = find_array(members, (*names)[i]);
      if (out[i] == nullptr && std::ranges::find(out, one) == out.end()) out[i] = one;
    }
  }
  return out;
}

// The .npy file in the archive for the tensor at `index`, of at most `limit_bytes`.
struct NamedNpy {
  std::string name;
  Bytes bytes;
};
Result<NamedNpy> npy_in(std::span<const uint8_t> file, const ir::Tensor& tensor, const ArrayNames& arrays, size_t index,
                        std::string_view what, uint64_t limit_bytes) {
  SK_TRY_ASSIGN(const std::vector<ZipMember> members, zip_members(file));
  const ZipMember* found = find_arrays(members, arrays)[index];
  if (found == nullptr)
    return error(ErrorCode::invalid_argument, "no array '{}' (or 'arr_{}') for the {} '{}' among its {}{}",
                 arrays.keys[index], index, what, tensor.name, members.size(), first_names(members));
  const auto is_same = [&](const ZipMember& other) { return is_named(other, array_name(*found)); };
  if (std::ranges::count_if(members, is_same) > 1)
    return error(ErrorCode::malformed, "two arrays are called '{}'", array_name(*found));
  SK_TRY_ASSIGN(Bytes npy, unpack(*found, limit_bytes));
  return NamedNpy{found->name, std::move(npy)};
}

Result<Bytes> array_of(std::span<const uint8_t> file, const ir::Tensor& tensor, const ArrayNames& arrays, size_t index,
                       std::string_view what) {
  const uint64_t limit_bytes = static_cast<uint64_t>(tensor.bytes()) + kMaxHeaderBytes;
  SK_TRY_ASSIGN(const NamedNpy npy, npy_in(file, tensor, arrays, index, what, limit_bytes));
  return parse_npy(npy.bytes, tensor, what).with_context(fmt::format("'{}'", npy.name));
}

std::string file_key(std::string_view name, size_t index) {
  constexpr size_t kMaxLetters = 100;
  std::string out(name.substr(0, kMaxLetters));
  for (char& c : out) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!is_plain && c != '.') c = '_';
  }
  if (out.empty()) return fmt::format("array{}", index);
  if (out[0] == '.') out[0] = '_';
  return out;
}

// NumPy accepts any array name. Some names make programs that unpack the archive write outside their folder, or stop.
std::string array_key(std::string_view name, size_t index) {
  constexpr size_t kMaxBytes = 4096;
  const bool is_odd = name.empty() || name.size() > kMaxBytes || !is_utf8(name) || name.starts_with('/') ||
                      name.find("..") != std::string_view::npos || name.find('\0') != std::string_view::npos;
  return is_odd ? file_key(name, index) : std::string(name);
}

// Applies `key` to each name, and appends numbers to equal results. A name that equals its key keeps it.
std::vector<std::string> keys_of(std::span<const std::string> names, std::string (*key)(std::string_view, size_t)) {
  std::vector<std::string> out(names.size());
  std::unordered_map<std::string, size_t> next;  // by key in use: the next number to try
  for (const bool is_own : {true, false}) {
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string one = key(names[i], i);
      if (!out[i].empty() || (is_own && (one != names[i] || next.contains(one)))) continue;
      out[i] = one;
      if (const auto taken = next.find(one); taken != next.end())
        for (size_t& n = taken->second; next.contains(out[i]); ++n) out[i] = fmt::format("{}_{}", one, n);
      next.emplace(out[i], 2);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> file_keys(std::span<const std::string> names) { return keys_of(names, file_key); }

ArrayNames array_names(const ir::Graph& graph, std::span<const ir::TensorId> tensors) {
  ArrayNames out;
  for (const ir::TensorId id : tensors) out.names.push_back(graph.tensor(id).name);
  out.keys = keys_of(out.names, array_key);
  out.files = file_keys(out.names);
  return out;
}

Result<Bytes> npy_of(const ir::Tensor& tensor, std::span<const uint8_t> bytes) {
  const std::string_view type = numpy_type(tensor.dtype);
  if (type.empty())
    return error(ErrorCode::unsupported, "'{}': NumPy has no type for {}", tensor.name, ir::dtype_name(tensor.dtype));
  std::string shape;
  for (const int32_t dim : tensor.shape.dims) shape += fmt::format("{}, ", dim);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  constexpr size_t kPrefixBytes = 10, kAlignment = 64;
  header.resize((kPrefixBytes + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - kPrefixBytes, ' ');
  header.back() = '\n';
  Bytes out = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
  store_le(out.data() + 8, static_cast<uint16_t>(header.size()));
  for (const char c : header) out.push_back(static_cast<uint8_t>(c));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

Result<Bytes> parse_npy(std::span<const uint8_t> file, const ir::Tensor& tensor, std::string_view what) {
  SK_TRY_ASSIGN(const NpyFile npy, split_npy(file));
  SK_TRY(check_keys(npy.header));
  const std::string_view wanted = numpy_type(tensor.dtype);
  const std::optional<std::string_view> type = quoted_value(npy.header, "'descr'");
  if (!type) return error(ErrorCode::malformed, ".npy header without 'descr', or of elements with fields");
  if (*type != wanted || wanted.empty())
    return error(ErrorCode::invalid_argument, "the file's elements are '{}', the {} '{}' is {} ('{}')", *type, what,
                 tensor.name, ir::dtype_name(tensor.dtype), wanted);
  const std::optional<std::string_view> order = value_after(npy.header, "'fortran_order'");
  const bool is_fortran = order && order->starts_with("True");
  if (!is_fortran && !(order && order->starts_with("False")))
    return error(ErrorCode::malformed, ".npy header without 'fortran_order'");
  if (is_fortran)
    return error(ErrorCode::invalid_argument, ".npy file in Fortran order (save it with numpy.ascontiguousarray)");
  const std::optional<ir::Shape> shape = shape_value(npy.header);
  if (!shape) return error(ErrorCode::malformed, ".npy header without 'shape', or with an invalid one");
  if (!std::ranges::equal(without_leading_ones(*shape), without_leading_ones(tensor.shape)))
    return error(ErrorCode::invalid_argument, "the file's array is {}, the {} '{}' is {}", shape->to_string(), what,
                 tensor.name, tensor.shape.to_string());
  if (static_cast<int64_t>(npy.data.size()) != tensor.bytes())
    return error(ErrorCode::invalid_argument, "the file holds {} bytes, the {} '{}' has {} ({})", npy.data.size(), what,
                 tensor.name, tensor.bytes(), tensor.shape.to_string());
  return Bytes(npy.data.begin(), npy.data.end());
}

Result<Bytes> read_tensor_file(const std::string& path, const ir::Tensor& tensor, const ArrayNames& arrays,
                               size_t index, std::string_view what) {
  SK_TRY_ASSIGN(Bytes file, read_file(path));
  if (path.ends_with(".npz")) return array_of(file, tensor, arrays, index, what).with_context(path);
  if (path.ends_with(".npy")) return parse_npy(file, tensor, what).with_context(path);
  if (static_cast<int64_t>(file.size()) != tensor.bytes())
    return error(ErrorCode::invalid_argument, "{}: {} bytes, the {} '{}' takes {} ({} {})", path, file.size(), what,
                 tensor.name, tensor.bytes(), ir::dtype_name(tensor.dtype), tensor.shape.to_string());
  return file;
}

Result<std::vector<Bytes>> read_tensor_rows(const std::string& path, const ir::Tensor& tensor, const ArrayNames& arrays,
                                            size_t index) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 31;
  SK_TRY_ASSIGN(Bytes file, read_file(path));
  if (path.ends_with(".npz")) {
    auto npy = npy_in(file, tensor, arrays, index, "input", kMaxBytes);
    if (!npy.ok()) return std::move(npy).error().with_context(path);
    file = std::move(npy->bytes);
  }
  SK_TRY_ASSIGN(const NpyFile npy, split_npy(file).with_context(path));
  const std::optional<ir::Shape> shape = shape_value(npy.header);
  const bool has_rows = shape && !shape->dims.empty();
  ir::Shape one = has_rows ? *shape : ir::Shape();
  if (has_rows) one.dims.erase(one.dims.begin());
  if (!has_rows || !std::ranges::equal(without_leading_ones(one), without_leading_ones(tensor.shape)))
    return error(ErrorCode::invalid_argument,
                 "{}: the array is {}; for the input '{}' ({}) it must be that with the number of inferences in front",
                 path, shape ? shape->to_string() : "of no known shape", tensor.name, tensor.shape.to_string());
  ir::Tensor all{.name = tensor.name, .dtype = tensor.dtype, .shape = *shape, .owner = {}};
  SK_TRY_ASSIGN(const Bytes bytes, parse_npy(file, all).with_context(path));
  std::vector<Bytes> out;
  const auto each = static_cast<size_t>(tensor.bytes());
  for (size_t at = 0; each > 0 && at + each <= bytes.size(); at += each)
    out.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + each));
  return out;
}

Result<void> warn_of_other_arrays(const std::string& path, const ir::Graph& graph) {
  SK_TRY_ASSIGN(const Bytes file, read_file(path));
  auto members = zip_members(file);
  if (!members) return std::move(members).error().with_context(path);
  const std::vector<const ZipMember*> taken = find_arrays(*members, array_names(graph, graph.inputs));
  std::vector<ZipMember> others;
  for (const ZipMember& member : *members)
    if (std::ranges::find(taken, &member) == taken.end()) others.push_back(member);
  if (others.empty()) return {};
  log::warning("{}: {} of {} arrays match no input of the network{}", path, others.size(), members->size(),
               first_names(others));
  return {};
}

Result<Bytes> RandomStream::fill(const ir::Tensor& tensor) {
  const auto size = static_cast<size_t>(ir::dtype_bytes(tensor.dtype));
  const bool is_other_float = tensor.dtype == ir::DType::float16 || tensor.dtype == ir::DType::float64;
  if (!has_numbers(tensor.dtype) || is_other_float)
    return error(ErrorCode::unsupported, "input '{}': no random values for type {}", tensor.name,
                 ir::dtype_name(tensor.dtype));
  Bytes out(static_cast<size_t>(tensor.bytes()));
  for (size_t at = 0; at < out.size(); at += size) {
    uint64_t draw = random_.next();
    if (tensor.dtype == ir::DType::float32) {
      store_le(out.data() + at, static_cast<float>(draw >> 40) / 16777216.0F);
    } else if (tensor.dtype == ir::DType::boolean) {
      out[at] = draw & 1;
    } else {
      // Wider integers get the sign-extended low byte too: a network can use it as an index.
      const auto value =
          tensor.dtype == ir::DType::uint8 ? static_cast<int64_t>(draw & 0xFF) : static_cast<int8_t>(draw);
      std::memcpy(out.data() + at, &value, size);
    }
  }
  return out;
}

namespace {

// The fewest rows that an op selects from by the values of an input, directly or through ops of integers: Keras adds
// the number of rows to negative indices. 0: none does.
int64_t rows_selected_by(const ir::Graph& graph, ir::TensorId input) {
  std::vector<bool> follows(graph.tensors.size(), false);
  const auto is_index = [&](ir::TensorId id) { return id != ir::kNoTensor && follows[static_cast<size_t>(id)]; };
  follows[static_cast<size_t>(input)] = true;
  int64_t fewest = 0;
  const auto limit = [&](int64_t rows) { fewest = fewest == 0 ? rows : std::min(fewest, rows); };
  const auto limit_tuples = [&](ir::TensorId tuples, const ir::Shape& from) {
    for (int axis = 0; axis < graph.tensor(tuples).shape.back(0); ++axis) limit(from[axis]);
  };
  for (const ir::Op& op : graph.ops) {
    if (op.kind == ir::OpKind::gather && is_index(op.inputs[1])) {
      const ir::Shape& from = graph.tensor(op.inputs[0]).shape;
      const int32_t axis = op.as<ir::GatherAttrs>().axis;
      limit(from[axis < 0 ? axis + from.rank() : axis]);
    } else if (op.kind == ir::OpKind::gather_nd && is_index(op.inputs[1])) {
      limit_tuples(op.inputs[1], graph.tensor(op.inputs[0]).shape);
    } else if (op.kind == ir::OpKind::scatter_nd && is_index(op.inputs[0])) {
      limit_tuples(op.inputs[0], graph.tensor(op.outputs[0]).shape);
    } else if (op.kind == ir::OpKind::embedding_lookup && is_index(op.inputs[0])) {
      limit(graph.tensor(op.inputs[1]).shape[0]);
    } else if (std::ranges::any_of(op.inputs, is_index)) {
      for (const ir::TensorId output : op.outputs) {
        const ir::DType type = graph.tensor(output).dtype;
        follows[static_cast<size_t>(output)] = type == ir::DType::int32 || type == ir::DType::int64;
      }
    }
  }
  return fewest;
}

template <typename T>
void limit_indices(Bytes& bytes, int64_t rows) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const int64_t value = load_le<T>(bytes.data() + at) % rows;
    store_le(bytes.data() + at, static_cast<T>(value < 0 ? value + rows : value));
  }
}

}  // namespace

Result<std::vector<Bytes>> random_inputs(uint64_t seed, const ir::Graph& graph) {
  RandomStream stream(seed);
  std::vector<Bytes> inputs;
  for (const ir::TensorId id : graph.inputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    SK_TRY_INTO(inputs.emplace_back(), stream.fill(tensor));
    const int64_t rows = rows_selected_by(graph, id);
    if (rows > 0 && tensor.dtype == ir::DType::int32) limit_indices<int32_t>(inputs.back(), rows);
    if (rows > 0 && tensor.dtype == ir::DType::int64) limit_indices<int64_t>(inputs.back(), rows);
  }
  return inputs;
}

}  // namespace skillet::tools
