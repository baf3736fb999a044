// Op: one operation of a graph: its kind, its attributes, its operands.
// Called by importers (which fill it), passes, drivers and graph/ref/ (which read it).
// Must not know: file formats, chips.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace skillet::ir {

using TensorId = int32_t;           // index into Graph::tensors
using OpId = int32_t;               // index into Graph::ops
constexpr TensorId kNoTensor = -1;  // an optional operand that is left out
constexpr int32_t kCustomOp = -1;   // in place of a TFLite builtin code: the operation has only a name
constexpr int32_t kNoFileOp = -2;   // made by passes; no model file has it

enum class OpKind : uint8_t {
#define OP(kind, name, code, attrs, ...) kind,
#include "graph/ir/op.def"
#undef OP
  opaque,  // custom, or known to the file format only by name
};

enum class Activation : uint8_t { none, relu, relu_n1_to_1, relu6, tanh, sign_bit };
enum class Padding : uint8_t { same, valid };

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};
// Attributes that we do not read; kept as text only to print them.
struct OpaqueAttrs {
  bool operator==(const OpaqueAttrs&) const = default;
};
// Rows of padding above and below; negative: rows of the image that no window covers.
struct RowPads {
  int32_t top = 0, bottom = 0;
  bool operator==(const RowPads&) const = default;
};
#define FIELD(type, name, initial, file_name) type name = initial;
#define ATTRS(Struct, ...)                          \
  struct Struct {                                   \
    __VA_ARGS__                                     \
    bool operator==(const Struct&) const = default; \
  };
#include "graph/ir/attrs.def"
#undef ATTRS
#undef FIELD

using AttrsOfAnyKind = std::variant<NoAttrs, OpaqueAttrs
#define ATTRS(Struct, ...) , Struct
#include "graph/ir/attrs.def"
#undef ATTRS
                                    >;

template <typename T, typename... Kinds>
constexpr bool is_one_of(const std::variant<Kinds...>*) {
  return (std::is_same_v<T, Kinds> || ...);
}
template <typename T>
concept AttrsOfOneKind = is_one_of<T>(static_cast<const AttrsOfAnyKind*>(nullptr));

// The variant, made, copied and destroyed in op.cpp: nearly every file includes Op; this code compiles only once.
class Attrs : public AttrsOfAnyKind {
 public:
  Attrs();
  template <AttrsOfOneKind T>
  Attrs(T attrs);  // NOLINT: implicit, as a variant's
  Attrs(const Attrs&);
  Attrs(Attrs&&) noexcept;
  Attrs& operator=(const Attrs&);
  Attrs& operator=(Attrs&&) noexcept;
  ~Attrs();
};

struct Op {
  OpKind kind = OpKind::opaque;
  std::string opaque_name;  // name in the file of an opaque op ("FlexErf"), a table or a mean ("HardSigmoid")
  Attrs attrs;
  std::vector<TensorId> inputs;  // kNoTensor for an optional operand that is left out
  std::vector<TensorId> outputs;
  int32_t source_index = -1;  // position in the graph as read from the model file, for messages and reports

  // The attributes of this kind; only valid for the type that op.def lists for the kind.
  template <typename T>
  const T& as() const {
    return std::get<T>(attrs);
  }
  TensorId input(size_t i) const { return i < inputs.size() ? inputs[i] : kNoTensor; }
};

// "CONV_2D"; the name of an opaque op is in the op.
std::string_view op_kind_name(OpKind kind);
// Each element of the output depends only on the elements at that place of the inputs, which may be broadcast.
bool is_elementwise(OpKind kind);
std::string_view op_name(const Op& op);
std::optional<OpKind> op_kind_from_name(std::string_view name);
// The kind of a custom operation; nothing if op.def has no row.
std::optional<OpKind> op_kind_from_custom_name(std::string_view name);
// The kind of a TFLite builtin code; nothing if op.def has no row.
std::optional<OpKind> op_kind_from_tflite_code(int32_t code);
// Default attributes of the type that op.def lists for `kind`.
Attrs default_attrs(OpKind kind);

std::string_view activation_name(Activation activation);

}  // namespace skillet::ir
