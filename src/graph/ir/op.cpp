#include "graph/ir/op.h"

#include <cstddef>
#include <utility>

namespace skillet::ir {
namespace {

struct Row {
  std::string_view name;
  int32_t tflite_code;
  Attrs (*make_attrs)();
  bool is_elementwise;
};

// By the rule that gives the shapes of the outputs.
constexpr bool is_rule_of_elements(std::string_view shapes) {
  return shapes == "same_shape" || shapes == "broadcast" || shapes == "leaky_relu" || shapes == "prelu" ||
         shapes == "byte_table";
}

template <typename T>
Attrs make() {
  return T{};
}

// In the order of OpKind, without `opaque`.
constexpr std::array kRows = {
#define OP(kind, name, code, attrs, inputs_min, inputs_max, outputs, types, shapes, ...) \
  Row{name, code, make<attrs>, is_rule_of_elements(#shapes)},
#include "graph/ir/op.def"
#undef OP
};

constexpr std::array<std::string_view, 6> kActivationNames = {"none",  "relu", "relu_n1_to_1",
                                                              "relu6", "tanh", "sign_bit"};

}  // namespace

Attrs::Attrs() = default;
template <AttrsOfOneKind T>
Attrs::Attrs(T attrs) : AttrsOfAnyKind(std::move(attrs)) {}
Attrs::Attrs(const Attrs&) = default;
Attrs::Attrs(Attrs&&) noexcept = default;
Attrs& Attrs::operator=(const Attrs&) = default;
Attrs& Attrs::operator=(Attrs&&) noexcept = default;
Attrs::~Attrs() = default;

template Attrs::Attrs(NoAttrs);
template Attrs::Attrs(OpaqueAttrs);
#define ATTRS(Struct, ...) template Attrs::Attrs(Struct);
#include "graph/ir/attrs.def"
#undef ATTRS

std::string_view op_kind_name(OpKind kind) {
  return kind == OpKind::opaque ? "opaque" : kRows[static_cast<size_t>(kind)].name;
}

bool is_elementwise(OpKind kind) { return kind != OpKind::opaque && kRows[static_cast<size_t>(kind)].is_elementwise; }

std::string_view op_name(const Op& op) {
  const bool has_own = op.kind == OpKind::opaque || op.kind == OpKind::byte_table || op.kind == OpKind::mean;
  return has_own && !op.opaque_name.empty() ? op.opaque_name : op_kind_name(op.kind);
}

std::optional<OpKind> op_kind_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

std::optional<OpKind> op_kind_from_tflite_code(int32_t code) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (code >= 0 && kRows[i].tflite_code == code) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

std::optional<OpKind> op_kind_from_custom_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].tflite_code == kCustomOp && kRows[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

Attrs default_attrs(OpKind kind) {
  return kind == OpKind::opaque ? Attrs{OpaqueAttrs{}} : kRows[static_cast<size_t>(kind)].make_attrs();
}

std::string_view activation_name(Activation activation) { return kActivationNames[static_cast<size_t>(activation)]; }

}  // namespace skillet::ir
