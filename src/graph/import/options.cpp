#include "graph/import/options.h"

#include <cstdlib>

#include "graph/import/appended_fields.h"
#include "graph/import/custom_options.h"
#include "graph/import/no_attrs.h"
#include "graph/ir/attrs_fields.h"

namespace skillet::tflite {
namespace {

using ir::Attrs;
using ir::OpKind;

// A table without fields: reading it gives the schema's defaults. First its vtable (4 bytes, for a table of 4 bytes),
// then the table, which only holds the distance back to the vtable.
alignas(8) constexpr uint8_t kEmptyTable[8] = {4, 0, 4, 0, 4, 0, 0, 0};

template <typename T>
Result<const T*> options(const schema::Operator& op) {
  constexpr auto kExpected = schema::BuiltinOptionsTraits<T>::enum_value;
  if (op.builtin_options_type() != kExpected && op.builtin_options_type() != schema::BuiltinOptions::NONE) {
    return error(ErrorCode::malformed, "options of type {}, expected {}", static_cast<int>(op.builtin_options_type()),
                 static_cast<int>(kExpected));
  }
  const T* table = op.builtin_options_type() == kExpected ? static_cast<const T*>(op.builtin_options()) : nullptr;
  return table != nullptr ? table : reinterpret_cast<const T*>(kEmptyTable + 4);
}

// Takes the values of a file's fields. The table's types equal the IR's, except for enumerations and lists.
struct Take {
  template <typename T>
  Result<void> operator()(std::string_view, T& to, T value) const {
    to = value;
    return {};
  }
  Result<void> operator()(std::string_view, ir::Padding& to, int8_t code) const {
    if (code != 0 && code != 1) return error(ErrorCode::malformed, "unknown padding {}", int{code});
    to = code == 0 ? ir::Padding::same : ir::Padding::valid;
    return {};
  }
  Result<void> operator()(std::string_view, ir::Activation& to, int8_t code) const {
    if (code < 0 || code > static_cast<int8_t>(ir::Activation::sign_bit))
      return error(ErrorCode::malformed, "unknown activation function {}", int{code});
    to = static_cast<ir::Activation>(code);
    return {};
  }
  // MIRROR_PAD's mode.
  Result<void> operator()(std::string_view name, bool& to, int8_t code) const {
    if (code != 0 && code != 1) return error(ErrorCode::malformed, "{} of unknown code {}", name, int{code});
    to = code == 1;
    return {};
  }
  // Longer lists than a shape can have dimensions are not copied.
  Result<void> operator()(std::string_view, std::vector<int32_t>& to, const flatbuffers::Vector<int32_t>* list) const {
    constexpr flatbuffers::uoffset_t kMaxEntries = 64;
    if (list == nullptr) return {};
    if (list->size() > kMaxEntries) return error(ErrorCode::malformed, "a list of {} entries", list->size());
    to.assign(list->begin(), list->end());
    return {};
  }
};

template <typename T, typename A>
Result<Attrs> from(const schema::Operator& op) {
  SK_TRY_ASSIGN(const T* table, options<T>(op));
  A attrs;
  SK_TRY(ir::take_fields(attrs, *table, Take{}));
  return Attrs{std::move(attrs)};
}

}  // namespace

Result<Attrs> read_attrs(OpKind kind, const schema::Operator& op) {
  switch (kind) {
#define OPTIONS(kind, Table, Params) \
  case OpKind::kind:                 \
    return from<schema::Table, ir::AttrsOf<OpKind::kind>>(op);
#include "graph/import/options.def"
#undef OPTIONS
    case OpKind::detection_post_process: return read_detection_options(op.custom_options());
    default: return no_attrs(kind);
  }
}

bool must_stay_opaque(OpKind kind, const schema::Operator& op) {
  if (kind == OpKind::lstm) {
    const auto* options = op.builtin_options_as_LSTMOptions();
    return options != nullptr && options->kernel_type() != 0;  // other kernel types have other operands
  }
  if (kind == OpKind::unidirectional_sequence_lstm) {
    const auto* options = op.builtin_options_as_UnidirectionalSequenceLSTMOptions();
    return options != nullptr && options->diagonal_recurrent_tensors();  // weights of one row
  }
  if (kind != OpKind::fully_connected) return false;
  const auto* options = op.builtin_options_as_FullyConnectedOptions();
  // Weights shuffled for the vector unit of one CPU.
  return options != nullptr && options->weights_format() != 0;
}

std::string why_not_of_version(const ir::Op& op, int version) {
  const auto number = []<typename T>(const T& value) -> int64_t {
    if constexpr (std::is_same_v<T, int32_t>) return std::abs(int64_t{value});
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, ir::Activation>) return static_cast<int64_t>(value);
    return 0;
  };
  std::string why;
  const auto judge = [&](std::string_view name, const auto& field, std::string_view) {
    if (version < first_version_of(op.kind, name) && number(field) != 0)
      why = why_not_of_version(name, version, number(field));
  };
  std::visit([&](const auto& attrs) { ir::for_each_field(attrs, judge); }, op.attrs);
  return why;
}

}  // namespace skillet::tflite
