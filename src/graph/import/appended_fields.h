// Fields that later versions of an operation appended to its options: which version has them. A file whose operation
// gives one without the version is read as its author meant; the delegate, whose host may have anything there, leaves
// it to the host. Called by the importer (for `skillet check --delegate`) and the delegate. Must not know: how options
// are stored.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "graph/ir/op.h"

namespace skillet::tflite {

// From which version on (converter/tools/versioning/op_version.cc).
constexpr int kTransposeConvActivation = 4, kStridedSliceOffset = 8, kGatherBatchDims = 5;

inline std::string why_not_of_version(std::string_view field, int version, int64_t value) {
  return fmt::format("op version {} has no {}, but {} is given", version, field, value);
}

// Empty: the operation's version has all that it gives.
inline std::string why_not_of_version(const ir::Op& op, int version) {
  const auto judge = [&](std::string_view field, int from, int64_t value) {
    return version < from && value != 0 ? why_not_of_version(field, version, value) : std::string();
  };
  switch (op.kind) {
    case ir::OpKind::transpose_conv:
      return judge("activation", kTransposeConvActivation, static_cast<int64_t>(op.as<ir::ConvAttrs>().activation));
    case ir::OpKind::strided_slice:
      return judge("offset", kStridedSliceOffset, op.as<ir::StridedSliceAttrs>().offset ? 1 : 0);
    case ir::OpKind::gather:
      return judge("batch_dims", kGatherBatchDims, std::abs(int64_t{op.as<ir::GatherAttrs>().batch_dims}));
    default: return {};
  }
}

}  // namespace skillet::tflite
