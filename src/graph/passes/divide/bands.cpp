#include "graph/passes/divide/bands.h"

#include <algorithm>
#include <optional>

#include "base/int_math.h"

namespace skillet::passes {
namespace {

using ir::OpKind;
using ir::TensorId;

constexpr int kRowAxis = 1, kChannelAxis = 3;

size_t at(int32_t id) { return static_cast<size_t>(id); }
bool is_empty(const Rows& rows) { return rows.begin >= rows.end; }
Rows hull(const Rows& a, const Rows& b) {
  if (is_empty(a)) return b;
  return is_empty(b) ? a : Rows{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}
Rows clipped(const Rows& rows, int32_t height) {
  return {std::clamp(rows.begin, 0, height), std::clamp(rows.end, 0, height)};
}

// True for a batch of one image.
bool is_image(const ir::Tensor& tensor) { return tensor.shape.rank() == 4 && tensor.shape[0] == 1; }
int32_t height_of(const ir::Graph& graph, TensorId id) { return graph.tensor(id).shape[kRowAxis]; }
bool is_computed(const ir::Graph& graph, TensorId id) { return id != ir::kNoTensor && !graph.tensor(id).is_constant(); }

// The window that an op slides over rows.
struct Window {
  int32_t extent = 1, stride = 1, top = 0;
  // The first row that a window covers, and the row after its last one.
  int32_t first(int32_t row) const { return row * stride - top; }
  int32_t end(int32_t row) const { return first(row) + extent; }
};

template <typename Attrs>
Window window(const Attrs& attrs, int32_t kernel, int32_t dilation, int32_t in, int32_t out) {
  Window w{.extent = (kernel - 1) * dilation + 1, .stride = attrs.stride_h};
  if (attrs.padding == ir::Padding::same) w.top = std::max((out - 1) * w.stride + w.extent - in, 0) / 2;
  if (attrs.rows) w.top = attrs.rows->top;
  return w;
}

bool slides(OpKind kind) {
  return kind == OpKind::conv_2d || kind == OpKind::depthwise_conv_2d || kind == OpKind::average_pool_2d ||
         kind == OpKind::max_pool_2d;
}

Window window_of(const ir::Graph& graph, const ir::Op& op) {
  const int32_t in = height_of(graph, op.inputs[0]), out = height_of(graph, op.outputs[0]);
  if (const auto* pool = std::get_if<ir::PoolAttrs>(&op.attrs)) return window(*pool, pool->filter_h, 1, in, out);
  const auto& conv = op.as<ir::ConvAttrs>();
  return window(conv, graph.tensor(op.inputs[1]).shape[kRowAxis], conv.dilation_h, in, out);
}

bool pads(OpKind kind) { return kind == OpKind::pad || kind == OpKind::pad_v2; }

// PAD of an image: rows before and after, if they are constant and only the image's dimensions grow.
std::vector<int32_t> paddings(const ir::Graph& graph, const ir::Op& op) {
  constexpr size_t kCount = 8;
  const ir::Tensor& table = graph.tensor(op.inputs[1]);
  if (!table.is_constant() || table.dtype != ir::DType::int32 || table.shape.elems() != kCount) return {};
  return table.values<int32_t>();
}

bool keeps_rows(OpKind kind) {
  return ir::is_elementwise(kind) || kind == OpKind::concatenation || kind == OpKind::split || kind == OpKind::split_v;
}

bool is_channel_axis(int64_t axis) { return axis == kChannelAxis || axis == kChannelAxis - 4; }

// The axis along which an op joins or splits; nothing if it does neither.
std::optional<int64_t> axis_of(const ir::Graph& graph, const ir::Op& op) {
  if (op.kind == OpKind::concatenation) return op.as<ir::ConcatAttrs>().axis;
  if (op.kind != OpKind::split && op.kind != OpKind::split_v) return std::nullopt;
  const ir::Tensor& axis = graph.tensor(op.inputs[op.kind == OpKind::split ? 0 : 2]);
  const bool known = axis.is_constant() && axis.dtype == ir::DType::int32 && axis.shape.elems() == 1;
  return known ? axis.values<int32_t>()[0] : kRowAxis;
}

// True for operands that apply to every row: each band has the same ones.
bool is_for_each_row(const ir::Graph& graph, const ir::Op& op, TensorId id) {
  if (axis_of(graph, op) && op.kind != OpKind::concatenation) return true;  // the axis and sizes
  const ir::Shape& shape = graph.tensor(id).shape;
  return op.kind != OpKind::concatenation && (shape.rank() < 3 || shape.back(2) == 1);
}

bool is_row_wise(const ir::Graph& graph, const ir::Op& op) {
  const auto is_computed_image = [&](TensorId id) { return is_computed(graph, id) && is_image(graph.tensor(id)); };
  if (op.inputs.empty() || !std::ranges::all_of(op.outputs, is_computed_image)) return false;
  if (slides(op.kind) || pads(op.kind)) {
    const auto others = std::span(op.inputs).subspan(1);
    const bool constant = std::ranges::none_of(others, [&](TensorId id) { return is_computed(graph, id); });
    if (!constant || !is_computed_image(op.inputs[0])) return false;
    if (slides(op.kind)) return true;
    const std::vector<int32_t> table = paddings(graph, op);
    return !table.empty() && table[0] == 0 && table[1] == 0 && table[2] >= 0 && table[3] >= 0;
  }
  if (!keeps_rows(op.kind) || !is_channel_axis(axis_of(graph, op).value_or(kChannelAxis))) return false;
  const int32_t height = height_of(graph, op.outputs[0]);
  return std::ranges::all_of(op.inputs, [&](TensorId id) {
    if (id == ir::kNoTensor) return true;
    if (!is_computed(graph, id)) return is_for_each_row(graph, op, id);
    return is_image(graph.tensor(id)) && height_of(graph, id) == height;
  });
}

// Computes the rows of each tensor that a band needs.
class Planner {
 public:
  Planner(const ir::Graph& run, int band, int count) : run_(run), rows_(run.tensors.size()) {
    for (const TensorId id : run.outputs) {
      const int64_t height = height_of(run, id);
      gives_.push_back(
          {static_cast<int32_t>(height * band / count), static_cast<int32_t>(height * (band + 1) / count)});
      grow(id, gives_.back());
    }
  }

  // Returns false if some op would compute nothing.
  bool run() {
    for (auto op = run_.ops.rbegin(); op != run_.ops.rend(); ++op) {
      Rows out;
      for (const TensorId id : op->outputs) out = hull(out, rows(id));
      if (is_empty(out)) return false;
      need(*op, out);
    }
    do {
      changed_ = false;
      for (auto op = run_.ops.rbegin(); op != run_.ops.rend(); ++op) fit(*op);
    } while (changed_);
    return std::ranges::all_of(run_.inputs, [&](TensorId id) { return !is_empty(rows(id)); });
  }

  Rows& rows(TensorId id) { return rows_[at(id)]; }
  std::vector<Rows> take_rows() { return std::move(rows_); }
  std::vector<Rows> take_gives() { return std::move(gives_); }

 private:
  void grow(TensorId id, const Rows& by) {
    const Rows grown = hull(rows(id), clipped(by, height_of(run_, id)));
    changed_ |= grown != rows(id);
    rows(id) = grown;
  }
  template <typename Do>
  void for_each_image(const ir::Op& op, Do todo) {
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const TensorId id : *list) {
        if (is_computed(run_, id)) todo(id);
      }
    }
  }

  // Adds the input rows that the rows `out` depend on.
  void need(const ir::Op& op, const Rows& out) {
    if (slides(op.kind)) {
      const Window w = window_of(run_, op);
      grow(op.inputs[0], {w.first(out.begin), w.end(out.end - 1)});
    } else if (pads(op.kind)) {
      const int32_t top = paddings(run_, op)[2];
      grow(op.inputs[0], {out.begin - top, out.end - top});
    } else {
      for_each_image(op, [&](TensorId id) { grow(id, out); });
    }
  }

  // Adds rows that the op requires: each window holds a row, PAD adds all rows of its input, operands of other ops have
  // the same rows. These can be more than are needed if readers of a tensor need different rows.
  void fit(const ir::Op& op) {
    const TensorId in = op.inputs[0], out = op.outputs[0];
    if (slides(op.kind)) {
      const Window w = window_of(run_, op);
      const int32_t last = height_of(run_, in) - 1;
      const int32_t first_row = std::clamp(w.end(rows(out).begin) - 1, 0, last);
      const int32_t last_row = std::clamp(w.first(rows(out).end - 1), 0, last);
      grow(in, hull({first_row, first_row + 1}, {last_row, last_row + 1}));
    } else if (pads(op.kind)) {
      const int32_t top = paddings(run_, op)[2];
      grow(out, {rows(in).begin + top, rows(in).end + top});
      grow(in, {rows(out).begin - top, rows(out).end - top});
    } else {
      Rows all;
      for_each_image(op, [&](TensorId id) { all = hull(all, rows(id)); });
      for_each_image(op, [&](TensorId id) { grow(id, all); });
    }
  }

  const ir::Graph& run_;
  std::vector<Rows> rows_;   // by tensor
  std::vector<Rows> gives_;  // by output
  bool changed_ = false;
};

// Sets the op's padding in the band: the rows that its windows need and the band's tensor does not have.
void set_padding(const ir::Graph& run, const Band& band, ir::Op& op) {
  const Rows &in = band.rows[at(op.inputs[0])], &out = band.rows[at(op.outputs[0])];
  const Window w = window_of(run, op);
  ir::RowPads rows{.top = in.begin - w.first(out.begin)};
  rows.bottom = w.end(out.end - 1) - in.end;
  std::visit(
      [&](auto& attrs) {
        if constexpr (requires { attrs.rows; }) attrs.rows = rows;
      },
      op.attrs);
}

void set_paddings(const ir::Graph& run, Band& band, ir::Op& op) {
  const Rows &in = band.rows[at(op.inputs[0])], &out = band.rows[at(op.outputs[0])];
  std::vector<int32_t> table = paddings(run, op);
  const int32_t top = table[2];
  table[2] = in.begin + top - out.begin;
  table[3] = out.end - (in.end + top);
  ir::Tensor tensor = run.tensor(op.inputs[1]);
  const auto* bytes = reinterpret_cast<const uint8_t*>(table.data());
  ir::set_constant(tensor, Bytes(bytes, bytes + table.size() * sizeof(int32_t)));
  op.inputs[1] = band.graph.add_tensor(std::move(tensor));
}

Band make_band(const ir::Graph& run, Planner& planner, int number) {
  Band band{.graph = run, .rows = planner.take_rows(), .gives = planner.take_gives()};
  band.graph.name = fmt::format("{}/band{}", run.name, number);
  for (size_t i = 0; i < run.tensors.size(); ++i) {
    if (!is_empty(band.rows[i])) band.graph.tensors[i].shape.dims[kRowAxis] = band.rows[i].count();
  }
  for (ir::Op& op : band.graph.ops) {
    if (slides(op.kind)) set_padding(run, band, op);
    if (pads(op.kind)) set_paddings(run, band, op);
  }
  return band;
}

}  // namespace

std::vector<ir::OpId> row_wise_ops(const ir::Graph& graph) {
  const std::vector<ir::OpId> producers = ir::producers(graph);
  std::vector<bool> is_in(graph.ops.size());
  std::vector<ir::OpId> ops;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto comes_with_it = [&](TensorId id) {
      return id == ir::kNoTensor || producers[at(id)] < 0 || is_in[at(producers[at(id)])];
    };
    is_in[i] = is_row_wise(graph, graph.ops[i]) && std::ranges::all_of(graph.ops[i].inputs, comes_with_it);
    if (is_in[i]) ops.push_back(static_cast<ir::OpId>(i));
  }
  return ops;
}

std::vector<Band> split_bands(const ir::Graph& run, int count) {
  if (std::ranges::any_of(run.outputs, [&](TensorId id) { return height_of(run, id) < count; })) return {};
  std::vector<Band> bands;
  for (int i = 0; i < count; ++i) {
    Planner planner(run, i, count);
    if (!planner.run()) return {};
    bands.push_back(make_band(run, planner, i));
  }
  return bands;
}

}  // namespace skillet::passes
