#include "frontend/onnx/model.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace skillet::onnx {
namespace {

const Attribute* find(const Node& node, const char* name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : &found->second;
}

template <typename T>
std::vector<double> read(std::span<const uint8_t> data) {
  std::vector<T> raw(data.size() / sizeof(T));
  if (!raw.empty()) std::memcpy(raw.data(), data.data(), raw.size() * sizeof(T));
  return {raw.begin(), raw.end()};
}

}  // namespace

int64_t int_of(const Node& node, const char* name, int64_t otherwise) {
  const Attribute* found = find(node, name);
  return found == nullptr || found->ints.empty() ? otherwise : found->ints[0];
}

std::vector<int64_t> ints_of(const Node& node, const char* name) {
  const Attribute* found = find(node, name);
  return found == nullptr ? std::vector<int64_t>() : found->ints;
}

float float_of(const Node& node, const char* name, float otherwise) {
  const Attribute* found = find(node, name);
  return found == nullptr || found->floats.empty() ? otherwise : found->floats[0];
}

std::string string_of(const Node& node, const char* name, const char* otherwise) {
  const Attribute* found = find(node, name);
  return found == nullptr || found->text.empty() ? otherwise : found->text;
}

std::optional<std::vector<double>> numbers(const Value& value) {
  if (!value.is_constant) return std::nullopt;
  switch (value.dtype) {
    case ir::DType::float32: return read<float>(value.data);
    case ir::DType::float64: return read<double>(value.data);
    case ir::DType::boolean: return read<uint8_t>(value.data);
    case ir::DType::int8: return read<int8_t>(value.data);
    case ir::DType::uint8: return read<uint8_t>(value.data);
    case ir::DType::int32: return read<int32_t>(value.data);
    case ir::DType::int64: return read<int64_t>(value.data);
    default: return std::nullopt;
  }
}

std::optional<std::vector<int64_t>> integers(const Value& value) {
  const auto read = numbers(value);
  constexpr double kMost = 1LL << 53;
  if (!read || value.dtype == ir::DType::float32 || value.dtype == ir::DType::float64) return std::nullopt;
  std::vector<int64_t> out;
  for (const double one : *read) out.push_back(static_cast<int64_t>(std::clamp(one, -kMost, kMost)));
  return out;
}

namespace {

// Operations whose first dimension is that of their input; with several operands the largest one, as in broadcasting.
constexpr std::array kKeepFirst = {"Conv",
                                   "Gemm",
                                   "MatMul",
                                   "MaxPool",
                                   "AveragePool",
                                   "GlobalAveragePool",
                                   "GlobalMaxPool",
                                   "Add",
                                   "Sub",
                                   "Mul",
                                   "Div",
                                   "Relu",
                                   "Clip",
                                   "Sigmoid",
                                   "HardSwish",
                                   "LeakyRelu",
                                   "Tanh",
                                   "Softplus",
                                   "Mish",
                                   "Swish",
                                   "Erf",
                                   "Softmax",
                                   "QuantizeLinear",
                                   "DequantizeLinear",
                                   "HardSigmoid",
                                   "QLinearConv",
                                   "QLinearAdd",
                                   "QLinearMul",
                                   "QGemm",
                                   "QLinearMatMul",
                                   "Resize",
                                   "QLinearSigmoid",
                                   "QLinearGlobalAveragePool",
                                   "QLinearAveragePool",
                                   "QLinearLeakyRelu"};

std::optional<int64_t> first_of(const Model& model, const Node& node) {
  if (std::ranges::count(kKeepFirst, node.op) == 0) return std::nullopt;
  std::optional<int64_t> first;
  size_t rank = 0;
  for (const int id : node.inputs) {
    if (id == kNone || model.value(id).is_constant) continue;
    const auto& dims = model.value(id).dims;
    if (!dims || dims->empty() || dims->front() < 0 || (rank != 0 && dims->size() != rank)) return std::nullopt;
    rank = dims->size();
    first = std::max(first.value_or(0), dims->front());
  }
  return first;
}

// The first dimension, from the number of elements and all other dimensions.
std::optional<int64_t> first_of_reshaped(const Model& model, const Node& node, const std::vector<int64_t>& to) {
  if (node.op != "Reshape" && node.op != "Flatten" && node.op != "Squeeze" && node.op != "Unsqueeze")
    return std::nullopt;
  if (node.inputs.empty() || node.inputs[0] == kNone || !model.value(node.inputs[0]).dims) return std::nullopt;
  int64_t elems = 1, others = 1;
  for (const int64_t dim : *model.value(node.inputs[0]).dims) {
    if (dim < 1 || dim > 1 << 30 || elems > 1 << 30) return std::nullopt;
    elems *= dim;
  }
  for (size_t i = 1; i < to.size(); ++i) {
    if (to[i] < 1 || to[i] > elems || others > elems) return std::nullopt;
    others *= to[i];
  }
  return elems % others == 0 ? std::optional(elems / others) : std::nullopt;
}

}  // namespace

Bytes permuted(const Value& value, const std::vector<int64_t>& dims, const std::vector<int64_t>& perm) {
  const auto elem = static_cast<size_t>(ir::dtype_bytes(value.dtype));
  std::vector<int64_t> stride(dims.size(), 1), at(perm.size());  // `at`: index, in the order of `perm`
  for (size_t i = dims.size(); i-- > 1;) stride[i - 1] = stride[i] * dims[i];
  Bytes out(value.data.size());
  for (size_t done = 0; done < out.size(); done += elem) {
    int64_t from = 0;
    for (size_t i = 0; i < perm.size(); ++i) from += at[i] * stride[static_cast<size_t>(perm[i])];
    std::memcpy(out.data() + done, value.data.data() + static_cast<size_t>(from) * elem, elem);
    for (size_t i = perm.size(); i-- > 0;) {
      if (++at[i] < dims[static_cast<size_t>(perm[i])]) break;
      at[i] = 0;
    }
  }
  return out;
}

void settle_batches(Model& model) {
  for (const Node& node : model.nodes) {
    for (const int id : node.outputs) {
      if (id == kNone || !model.value(id).dims || model.value(id).dims->empty()) continue;
      std::vector<int64_t>& dims = *model.values[static_cast<size_t>(id)].dims;
      const bool is_free =
          dims[0] < 0 && std::ranges::all_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d > 0; });
      if (!is_free) continue;
      if (const auto first = first_of(model, node)) dims[0] = *first;
      if (const auto first = first_of_reshaped(model, node, dims)) dims[0] = *first;
    }
  }
}

// True if the output counts windows that begin outside the image; a host's shape inference may do that.
static bool counts_too_many_windows(const Model& model, const Node& node) {
  if (int_of(node, "ceil_mode", 0) == 0 || node.inputs.empty() || node.outputs.empty()) return false;
  const auto dims_of = [&](int id) { return id == kNone ? std::nullopt : model.value(id).dims; };
  const auto image = dims_of(node.inputs[0]), out = dims_of(node.outputs[0]);
  if (!image || !out || image->size() != out->size()) return false;
  const std::vector<int64_t> strides = ints_of(node, "strides"), pads = ints_of(node, "pads");
  for (size_t i = 2; i < image->size(); ++i) {
    const int64_t stride = i - 2 < strides.size() ? strides[i - 2] : 1, pad = i - 2 < pads.size() ? pads[i - 2] : 0;
    if ((*image)[i] >= 0 && (*out)[i] > 0 && !begins_in_image((*out)[i] - 1, stride, (*image)[i], pad)) return true;
  }
  return false;
}

// Rows, columns and so on of a ConvTranspose's output; empty: its sizes or attributes do not determine them.
static std::vector<int64_t> transposed_sizes(const Node& node, const std::vector<int64_t>& image,
                                             const std::vector<int64_t>& filter) {
  const size_t rank = image.size() < 3 ? 0 : image.size() - 2;
  if (rank == 0 || filter.size() != image.size()) return {};
  const std::vector<int64_t> given = ints_of(node, "output_shape");
  const auto all = [&](const char* name, size_t count, int64_t otherwise) {
    std::vector<int64_t> out = ints_of(node, name);
    if (out.empty()) out.assign(count, otherwise);
    const auto fits = [](int64_t one) { return one >= 0 && one < 1 << 20; };
    return out.size() == count && std::ranges::all_of(out, fits) ? out : std::vector<int64_t>();
  };
  const auto strides = all("strides", rank, 1), dilations = all("dilations", rank, 1), pads = all("pads", 2 * rank, 0),
             more = all("output_padding", rank, 0);
  if (strides.empty() || dilations.empty() || pads.empty() || more.empty() || (!given.empty() && given.size() != rank))
    return {};
  const std::string automatic = string_of(node, "auto_pad", "NOTSET");
  std::vector<int64_t> out = given;
  for (size_t i = 0; given.empty() && i < rank; ++i) {
    constexpr int64_t kMost = 1 << 20;
    if (image[i + 2] < 1 || image[i + 2] > kMost || filter[i + 2] < 1 || filter[i + 2] > kMost) return {};
    const int64_t full = (image[i + 2] - 1) * strides[i] + (filter[i + 2] - 1) * dilations[i] + 1 + more[i];
    out.push_back(automatic.starts_with("SAME") ? std::min(full, image[i + 2] * strides[i])
                  : automatic == "VALID"        ? full
                                                : full - pads[i] - pads[i + rank]);
  }
  return out;
}

// With auto_pad, a host's shape inference counts output_padding that its kernels cut off.
static bool is_transposed_to_other_size(const Model& model, const Node& node) {
  if (node.op != "ConvTranspose" || node.inputs.size() < 2 || node.outputs.empty()) return false;
  const auto dims_of = [&](int id) { return id == kNone ? std::nullopt : model.value(id).dims; };
  const auto image = dims_of(node.inputs[0]), filter = dims_of(node.inputs[1]), out = dims_of(node.outputs[0]);
  if (!out || out->size() < 2 || !image || !filter) return false;
  return transposed_sizes(node, *image, *filter) != std::vector<int64_t>(out->begin() + 2, out->end());
}

void forget_wrong_sizes(Model& model) {
  std::vector<bool> wrong(model.values.size());
  const auto is_wrong = [&](int id) { return id != kNone && wrong[static_cast<size_t>(id)]; };
  for (const Node& node : model.nodes) {
    if (!counts_too_many_windows(model, node) && !is_transposed_to_other_size(model, node) &&
        std::ranges::none_of(node.inputs, is_wrong) && std::ranges::none_of(node.inner_inputs, is_wrong))
      continue;
    for (const int id : node.outputs) {
      if (id == kNone) continue;
      wrong[static_cast<size_t>(id)] = true;
      model.values[static_cast<size_t>(id)].dims.reset();
    }
  }
}

Links links_of(const Model& model) {
  Links links{std::vector<int>(model.values.size(), kNone), std::vector<std::vector<int>>(model.values.size())};
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    for (const int id : model.nodes[i].outputs) {
      if (id != kNone) links.producer[static_cast<size_t>(id)] = static_cast<int>(i);
    }
    for (const int id : model.nodes[i].inputs) {
      if (id == kNone) continue;
      auto& all = links.consumers[static_cast<size_t>(id)];
      if (all.empty() || all.back() != static_cast<int>(i)) all.push_back(static_cast<int>(i));
    }
  }
  return links;
}

}  // namespace skillet::onnx
