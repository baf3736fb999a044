#include "graph/passes/lower/by_axes.h"

#include <algorithm>
#include <utility>

namespace skillet::passes {
namespace {

constexpr int64_t kMacsMax = 1 << 27;  // per axis; with more, transposes take longer than the CPU

class ByAxes {
 public:
  ByAxes(Rewriter& rewriter, ir::TensorId to) : rewriter_(rewriter), to_(rewriter.tensor(to)) {}

  void turn(ir::TensorId from, ir::TensorId to) { ops_.push_back(rewriter_.transpose(from, to, {0, 2, 3, 1})); }
  ir::TensorId turned(ir::TensorId from) {
    const ir::Shape shape = rewriter_.tensor(from).shape;
    const ir::TensorId to =
        rewriter_.add_like(to_, ops_.empty() ? "/rows" : "/columns", {1, shape[2], shape[3], shape[1]});
    turn(from, to);
    return to;
  }
  ir::TensorId summed(ir::TensorId from, const AxisParts& of, ir::Activation activation) {
    const ir::Tensor image = rewriter_.tensor(from);
    const auto inputs = static_cast<size_t>(image.shape[3]);
    const auto size = static_cast<int32_t>(of.places.size());
    Bytes weights(of.places.size() * inputs, 0);
    for (size_t i = 0; i < of.places.size(); ++i) {
      for (const MixturePart& part : of.places[i])
        weights[i * inputs + static_cast<size_t>(part.pixel)] += static_cast<uint8_t>(part.amount);
    }
    const ir::TensorId to = rewriter_.add_like(to_, ops_.size() == 1 ? "/by_rows" : "/by_columns",
                                               {1, image.shape[1], image.shape[2], size});
    const std::string name = rewriter_.tensor(to).name + "/parts";
    const ir::ConvAttrs attrs{.padding = ir::Padding::valid, .activation = activation};
    ir::Op op{.kind = ir::OpKind::conv_2d, .attrs = attrs};
    op.inputs = {from,
                 rewriter_.add_constant(name, image.dtype, {size, 1, 1, image.shape[3]}, std::move(weights),
                                        {{1.0F / static_cast<float>(of.whole)}, {0}, 0}),
                 ir::kNoTensor};
    op.outputs = {to};
    ops_.push_back(std::move(op));
    return to;
  }
  std::vector<ir::Op>& ops() { return ops_; }

 private:
  Rewriter& rewriter_;
  const ir::Tensor to_;
  std::vector<ir::Op> ops_;
};

}  // namespace

std::vector<ir::Op> by_axes(Rewriter& rewriter, ir::TensorId from, ir::TensorId to, const AxisParts& rows,
                            const AxisParts& columns, ir::Activation activation) {
  const ir::Shape image = rewriter.tensor(from).shape, result = rewriter.tensor(to).shape;
  const int64_t elems = image.elems();
  if (elems > kMacsMax / std::max(1, result[1]) || elems / image[1] * result[1] > kMacsMax / std::max(1, result[2]))
    return {};
  ByAxes made(rewriter, to);
  const ir::TensorId by_rows = made.summed(made.turned(from), rows, ir::Activation::none);
  made.turn(made.summed(made.turned(by_rows), columns, activation), to);
  return std::move(made.ops());
}

}  // namespace skillet::passes
