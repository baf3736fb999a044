// Fields that later versions of an operation appended to its options, with the version. If a file sets such a field in
// an operation of an earlier version, the field is read, as its author meant it. The delegate leaves the operation to
// the host, whose memory may hold any value there. Called by the importer (for `skillet check --delegate`) and the
// delegate. Must not know: how options are stored.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "graph/ir/op.h"

namespace skillet::tflite {

struct AppendedField {
  ir::OpKind kind;
  std::string_view name;
  int version;  // the first version with the field (converter/tools/versioning/op_version.cc)
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

// Empty if the operation's version has all fields that it sets.
std::string why_not_of_version(const ir::Op& op, int version);

}  // namespace skillet::tflite
