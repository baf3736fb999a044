// Visitors over the fields of an operation's attributes, by the rows of attrs.def.
// Called by code that prints, parses, reads and writes attributes.
// Must not know: how values are written or read.
#pragma once

#include "base/result.h"
#include "graph/ir/op.h"

namespace skillet::ir {

// AttrsOf<kind>: the attributes that op.def lists for the kind.
template <OpKind kind>
struct AttrsOfKind;
#define OP(kind, name, code, attrs, ...) \
  template <>                            \
  struct AttrsOfKind<OpKind::kind> {     \
    using type = attrs;                  \
  };
#include "graph/ir/op.def"
#undef OP
template <OpKind kind>
using AttrsOf = typename AttrsOfKind<kind>::type;

// Calls visit(name, field, name in a model file) for each field; A is the struct, const or not.
template <typename A, typename Visit>
void for_each_field([[maybe_unused]] A& attrs, [[maybe_unused]] Visit&& visit) {
  using T = std::remove_const_t<A>;
#define FIELD(type, name, initial, file_name) visit(#name, attrs.name, #file_name);
#define ATTRS(Struct, ...)                   \
  if constexpr (std::is_same_v<T, Struct>) { \
    __VA_ARGS__                              \
  }
#include "graph/ir/attrs.def"
#undef ATTRS
#undef FIELD
}

// Calls take(name, field, value) for each field that FROM has. FROM is a table of a model file (fields are calls) or a
// struct of a host. Returns the first error of `take`.
template <typename A, typename From, typename Take>
Result<void> take_fields([[maybe_unused]] A& attrs, [[maybe_unused]] const From& from, [[maybe_unused]] Take&& take) {
#define FIELD(type, name, initial, file_name)          \
  if constexpr (requires { from.file_name(); }) {      \
    SK_TRY(take(#name, attrs.name, from.file_name())); \
  } else if constexpr (requires { from.file_name; }) { \
    SK_TRY(take(#name, attrs.name, from.file_name));   \
  }
#define ATTRS(Struct, ...)                   \
  if constexpr (std::is_same_v<A, Struct>) { \
    __VA_ARGS__                              \
  }
#include "graph/ir/attrs.def"
#undef ATTRS
#undef FIELD
  return {};
}

// Calls TABLE.add_FIELD(value_of(field)) for each field that the builder of a model file's table has.
template <typename A, typename Table, typename ValueOf>
void give_fields([[maybe_unused]] const A& attrs, [[maybe_unused]] Table& table, [[maybe_unused]] ValueOf&& value_of) {
#define FIELD(type, name, initial, file_name) \
  if constexpr (requires { table.add_##file_name(value_of(attrs.name)); }) table.add_##file_name(value_of(attrs.name));
#define ATTRS(Struct, ...)                   \
  if constexpr (std::is_same_v<A, Struct>) { \
    __VA_ARGS__                              \
  }
#include "graph/ir/attrs.def"
#undef ATTRS
#undef FIELD
}

}  // namespace skillet::ir
