#include "frontend/tflite_delegate/node_attrs.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "frontend/tflite_delegate/builtin_params.h"
#include "graph/import/appended_fields.h"
#include "graph/import/no_attrs.h"
#include "graph/ir/attrs_fields.h"

namespace skillet::delegate {
namespace {

using ir::Attrs;
using ir::OpKind;

// Reads a bool from memory that may hold any byte.
int64_t raw_value(const bool& flag) {
  uint8_t byte = 0;
  std::memcpy(&byte, &flag, 1);
  return byte;
}
int64_t raw_value(int value) { return value; }
int64_t raw_value(const auto&) { return 0; }  // other fields exist in all versions

constexpr int kHighestActivation = static_cast<int>(ir::Activation::sign_bit);

// Takes the values of a host's fields.
struct Take {
  OpKind kind;
  int version;

  template <typename T, typename V>
  Result<void> operator()(std::string_view name, T& to, const V& value) const {
    if (version < tflite::first_version_of(kind, name)) return check_absent(name, to, raw_value(value));
    return take(to, value);
  }

 private:
  // Hosts that have the field read it whatever the version is. In older hosts the same place is unused space of a small
  // allocation, with any contents. So if the version has no such field but its value has a meaning, the operation stays
  // with the host.
  template <typename T>
  Result<void> check_absent(std::string_view name, const T&, int64_t value) const {
    constexpr int64_t kMostDims = 8;
    int64_t highest = kMostDims;
    if constexpr (std::is_same_v<T, ir::Activation>) highest = kHighestActivation;
    if constexpr (std::is_same_v<T, bool>) highest = 1;
    if constexpr (std::is_same_v<T, int32_t>) value = std::abs(value);
    if (value < 1 || value > highest) return {};
    return error(ErrorCode::unsupported, "{}", tflite::why_not_of_version(name, version, value));
  }

  template <typename T>
  Result<void> take(T& to, const T& value) const {
    to = value;
    return {};
  }
  Result<void> take(ir::Padding& to, TfLiteEnum code) const {
    if (code != kTfLitePaddingSame && code != kTfLitePaddingValid)
      return error(ErrorCode::unsupported, "unknown padding {}", code);
    to = code == kTfLitePaddingSame ? ir::Padding::same : ir::Padding::valid;
    return {};
  }
  Result<void> take(ir::Activation& to, TfLiteEnum code) const {
    if (code < 0 || code > kHighestActivation)
      return error(ErrorCode::unsupported, "unknown activation function {}", code);
    to = static_cast<ir::Activation>(code);
    return {};
  }
  Result<void> take(bool& to, TfLiteEnum mode) const {  // MIRROR_PAD: 1 reflect, 2 symmetric
    if (mode != 1 && mode != 2) return error(ErrorCode::unsupported, "unknown mode {}", mode);
    to = mode == 2;
    return {};
  }
  Result<void> take(std::vector<int32_t>& to, const TfLiteShortList& list) const {
    if (list.count < 0 || list.count > 8) return error(ErrorCode::malformed, "a list of {} entries", list.count);
    to.assign(list.values, list.values + list.count);
    return {};
  }
};

template <typename P, typename A>
Result<Attrs> from(OpKind kind, const void* builtin_data, int version) {
  if (builtin_data == nullptr) return error(ErrorCode::malformed, "the node has no parameters");
  const P& params = *static_cast<const P*>(builtin_data);
  // Refuses weights shuffled for one CPU's vector unit, and an LSTM with other operands.
  if constexpr (requires { params.weights_format; }) {
    if (params.weights_format != 0) return error(ErrorCode::unsupported, "weights format {}", params.weights_format);
  }
  if constexpr (requires { params.kernel_type; }) {
    if (params.kernel_type != 0) return error(ErrorCode::unsupported, "kernel type {}", params.kernel_type);
  }
  A attrs;
  SK_TRY(ir::take_fields(attrs, params, Take{kind, version}));
  return Attrs{std::move(attrs)};
}

}  // namespace

Result<Attrs> read_attrs(OpKind kind, const void* data, int version) {
  switch (kind) {
#define OPTIONS(kind, Table, Params) \
  case OpKind::kind:                 \
    return from<Params, ir::AttrsOf<OpKind::kind>>(OpKind::kind, data, version);
#include "graph/import/options.def"
#undef OPTIONS
    default: return tflite::no_attrs(kind);
  }
}

}  // namespace skillet::delegate
