// Ops that repeat, reverse or mirror values: TILE, BROADCAST_TO, REVERSE_V2, MIRROR_PAD; also FILL, SHAPE, ZEROS_LIKE.
#include <algorithm>
#include <numeric>

#include "graph/ref/kernel.h"
#include "graph/ref/pick.h"

namespace skillet::ref {
namespace {

using Sources = std::vector<std::vector<size_t>>;

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

Result<KernelPtr> pick_kernel(const Context& c, const ir::Shape& input, const Sources& sources) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  PickPlan plan(input, sources, bytes);
  return make_kernel([plan = std::move(plan), in = c.input_index(0), out = c.output_index()](Tensors t) {
    plan.run(t[in].data(), t[out].data());
  });
}

}  // namespace

Result<KernelPtr> prepare_tile(const Context& c) {
  SK_TRY(c.constant_ints(1));
  Sources sources;
  for (int i = 0; i < c.output().shape.rank(); ++i) {
    sources.push_back(in_order(dim(c.output(), i)));
    for (size_t& index : sources.back()) index %= dim(c.input(0), i);
  }
  return pick_kernel(c, c.input(0).shape, sources);
}

Result<KernelPtr> prepare_broadcast_to(const Context& c) {
  SK_TRY(c.constant_ints(1));
  ir::Shape input = c.input(0).shape;
  input.dims.insert(input.dims.begin(), c.output().shape.dims.size() - input.dims.size(), 1);
  Sources sources;
  for (int i = 0; i < input.rank(); ++i) {
    const size_t size = dim(c.output(), i);
    sources.push_back(input[i] == 1 ? std::vector<size_t>(size) : in_order(size));
  }
  return pick_kernel(c, input, sources);
}

Result<KernelPtr> prepare_reverse_v2(const Context& c) {
  SK_TRY_ASSIGN(const auto axes, c.constant_ints(1));
  const ir::Shape& input = c.input(0).shape;
  Sources sources;
  for (int i = 0; i < input.rank(); ++i) {
    sources.push_back(in_order(dim(c.input(0), i)));
    const bool listed =
        std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return axis == i || axis + input.rank() == i; });
    if (listed) std::reverse(sources.back().begin(), sources.back().end());
  }
  return pick_kernel(c, input, sources);
}

Result<KernelPtr> prepare_mirror_pad(const Context& c) {
  SK_TRY_ASSIGN(const auto margins, c.constant_ints(1));
  const int64_t not_repeated = c.attrs<ir::MirrorPadAttrs>().symmetric ? 0 : 1;
  Sources sources;
  for (int i = 0; i < c.input(0).shape.rank(); ++i) {
    const int64_t size = c.input(0).shape[i], before = margins[static_cast<size_t>(2 * i)];
    sources.emplace_back();
    for (int64_t k = 0; k < c.output().shape[i]; ++k) {
      int64_t at = k - before;
      if (at < 0) at = -at - 1 + not_repeated;
      if (at >= size) at = 2 * size - 1 - at - not_repeated;
      sources.back().push_back(static_cast<size_t>(at));
    }
  }
  return pick_kernel(c, c.input(0).shape, sources);
}

Result<KernelPtr> prepare_fill(const Context& c) {
  SK_TRY(c.constant_ints(0));
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.output()));
  return make_kernel([bytes, in = c.input_index(1), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < t[out].size(); ++i) t[out][i] = t[in][i % bytes];
  });
}

Result<KernelPtr> prepare_shape(const Context& c) {
  const bool wide = c.output().dtype == ir::DType::int64;
  return make_kernel([wide, dims = c.input(0).shape.dims, out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (wide) elements<int64_t>(t[out])[i] = dims[i];
      if (!wide) elements<int32_t>(t[out])[i] = dims[i];
    }
  });
}

Result<KernelPtr> prepare_zeros_like(const Context& c) {
  return make_kernel([out = c.output_index()](Tensors t) { std::fill(t[out].begin(), t[out].end(), uint8_t{0}); });
}

}  // namespace skillet::ref
