// Attributes of operations that have none.
// Called by the readers of a model file's options and of a host's parameters, for what they do not list.
// Must not know: where parameters are kept.
#pragma once

#include "base/result.h"
#include "graph/ir/op.h"

namespace skillet::tflite {

// Error where op.def says that there are some: an operation that nobody reads them for would run with the defaults.
inline Result<ir::Attrs> no_attrs(ir::OpKind kind) {
  ir::Attrs attrs = ir::default_attrs(kind);
  if (std::holds_alternative<ir::NoAttrs>(attrs) || std::holds_alternative<ir::OpaqueAttrs>(attrs)) return attrs;
  return error(ErrorCode::unsupported, "its parameters are not read");
}

}  // namespace skillet::tflite
