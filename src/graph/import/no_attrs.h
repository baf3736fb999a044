// Attributes of operations without attributes.
// Called for operations that the readers of a model file's options and of a host's parameters do not list.
// Must not know: where parameters are stored.
#pragma once

#include "base/result.h"
#include "graph/ir/op.h"

namespace skillet::tflite {

// Error if op.def lists attributes: no reader exists for them, and the operation would run with the defaults.
inline Result<ir::Attrs> no_attrs(ir::OpKind kind) {
  ir::Attrs attrs = ir::default_attrs(kind);
  if (std::holds_alternative<ir::NoAttrs>(attrs) || std::holds_alternative<ir::OpaqueAttrs>(attrs)) return attrs;
  return error(ErrorCode::unsupported, "its parameters are not supported");
}

}  // namespace skillet::tflite
