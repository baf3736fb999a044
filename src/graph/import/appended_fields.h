// Fields that later versions of an operation appended to its options: which version has them. A file whose operation
// gives one without the version is read as its author meant; the delegate, whose host may have anything there, leaves
// it to the host. Called by the importer (for `skillet check --delegate`) and the delegate. Must not know: how options
// are stored.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "graph/ir/op.h"

namespace skillet::tflite {

struct AppendedField {
  ir::OpKind kind;
  std::string_view name;
  int version;  // the first one that has it (converter/tools/versioning/op_version.cc)
};
constexpr AppendedField kAppendedFields[] = {{ir::OpKind::transpose_conv, "activation", 4},
                                             {ir::OpKind::strided_slice, "offset", 8},
                                             {ir::OpKind::gather, "batch_dims", 5}};

constexpr int first_version_of(ir::OpKind kind, std::string_view name) {
  for (const AppendedField& one : kAppendedFields) {
    if (one.kind == kind && one.name == name) return one.version;
  }
  return 0;
}

inline std::string why_not_of_version(std::string_view field, int version, int64_t value) {
  return fmt::format("op version {} has no {}, but {} is given", version, field, value);
}

// Empty: the operation's version has all that it gives.
std::string why_not_of_version(const ir::Op& op, int version);

}  // namespace skillet::tflite
