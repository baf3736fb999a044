#include "npus/rockchip/compiler/interleave.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

uint64_t bytes_of(int64_t atoms) { return static_cast<uint64_t>(atoms * kAtom); }

// Whether channels stay in their order in memory: surface after surface, 16 channels of each.
bool is_in_surfaces(const Interleave& all) { return all.to.channels % kAtom == 0; }

template <typename Of>
std::vector<int32_t> numbers(int32_t count, Of of) {
  std::vector<int32_t> out;
  for (int32_t i = 0; i < count; ++i) out.push_back(of(i));
  return out;
}

// `row` is a row (a pixel) of each surface; a row of the output has `times` of them.
Conv spread(const Plane& in, const Plane& row, int32_t times, const Copies& copies) {
  Conv conv{.in = in, .out = {row.height, row.width, kAtom * copies.count}, .gap = (times - 1) * row.width};
  conv.out_pitch = row.width;
  return conv;
}

// A surface for each channel group of the input, whose groups are `pitch` pixels apart.
Conv whole_surfaces(const Plane& row, int64_t pitch, int32_t times, const Copies& copies) {
  Conv conv = spread({row.height, row.width, kAtom * copies.count}, row, times, copies);
  conv.in_pitch = pitch;
  choose(conv, numbers(conv.out.channels, [](int32_t lane) { return lane; }));
  return conv;
}

}  // namespace

int32_t Interleave::surfaces() const { return ceil_div(to.channels, kAtom); }

std::optional<Interleave> interleave_of(const ir::Graph& graph, const ir::Op& op) {
  Interleave all{.from = plane_of(graph.tensor(op.inputs[0]).shape), .to = plane_of(graph.tensor(op.outputs[0]).shape)};
  if (op.kind == ir::OpKind::depth_to_space) {
    all.rows = all.columns = op.as<ir::BlockAttrs>().block_size;
    return all;
  }
  // One pixel of many surfaces equals many pixels of one surface.
  if (all.to.pixels() == 1 && all.from.channels % kAtom == 0) all.to.channels = kAtom;
  if (all.to.channels < 1 || all.from.channels % all.to.channels != 0) return std::nullopt;
  // The division into rows makes no difference.
  all.columns = all.from.channels / all.to.channels;
  all.from = {static_cast<int32_t>(all.from.pixels()), 1, all.from.channels};
  all.to = {all.from.height, all.columns, all.to.channels};
  return all;
}

bool keeps_channels(const ir::Shape& from, const ir::Shape& to) {
  const Plane a = plane_of(from), b = plane_of(to);
  return a.channels == b.channels || (a.channels == kAtom && b.pixels() == 1);
}

int64_t weights_of(const Interleave& all) {
  const int64_t group = int64_t{kAtom} * all.columns;
  if (is_in_surfaces(all)) return group * group;
  return int64_t{all.rows} * all.surfaces() * group * all.from.channels;
}

std::vector<InterleavePass> column_passes(const Interleave& all) {
  const auto pixels = static_cast<int32_t>(all.from.pixels());
  const int32_t surfaces = all.surfaces();
  const Plane one{pixels, 1, 1}, each{pixels * surfaces, 1, 1};  // rows of one pixel
  std::vector<InterleavePass> out;
  const auto add = [&](Conv conv, const Copies& copies, const Copies& last, int64_t from, int32_t surface) {
    conv.shares_last = copies.first != last.first;
    const int64_t to = int64_t{surface} * pixels * all.columns + copies.first;
    out.push_back({std::move(conv), bytes_of(from), bytes_of(to)});
  };
  const std::vector<Copies> copies_of_row = copies_of(all.columns);
  for (int32_t row = 0; row < all.rows; ++row) {
    for (int32_t surface = 0; surface < (is_in_surfaces(all) ? 1 : surfaces); ++surface) {
      for (const Copies& copies : copies_of_row) {
        const int32_t first = row * all.columns + copies.first, at = row * surfaces + surface;
        if (is_in_surfaces(all)) {
          add(whole_surfaces(each, each.height, all.columns, copies), copies, copies_of_row.back(),
              int64_t{first} * each.height, at);
          continue;
        }
        Conv conv = spread({pixels, 1, all.from.channels}, one, all.columns, copies);
        choose(conv, numbers(conv.out.channels, [&](int32_t lane) {
                 const int32_t channel = surface * kAtom + lane % kAtom;
                 return channel < all.to.channels ? (first + lane / kAtom) * all.to.channels + channel : -1;
               }));
        add(std::move(conv), copies, copies_of_row.back(), 0, at);
      }
    }
  }
  return out;
}

std::vector<InterleavePass> row_passes(const Interleave& all) {
  const Plane row{all.from.height * all.surfaces(), all.to.width, 1};
  std::vector<InterleavePass> out;
  const std::vector<Copies> copies_of_column = copies_of(all.rows);
  for (const Copies& copies : copies_of_column) {
    Conv conv = whole_surfaces(row, row.pixels(), all.rows, copies);
    conv.shares_last = copies.first != copies_of_column.back().first;
    out.push_back({std::move(conv), bytes_of(copies.first * row.pixels()), bytes_before(copies, row.width)});
  }
  return out;
}

bool are_surfaces(const ir::Graph& graph, std::span<const ir::TensorId> pieces) {
  return std::all_of(pieces.begin(), pieces.end() - 1,
                     [&](ir::TensorId piece) { return plane_of(graph.tensor(piece).shape).channels % kAtom == 0; });
}

Joined joined_of(const ir::Graph& graph, const ir::Op& op) {
  Joined out{.to = plane_of(graph.tensor(op.outputs[0]).shape)};
  for (const ir::TensorId piece : op.inputs) {
    const int32_t channels = plane_of(graph.tensor(piece).shape).channels;
    for (int32_t c = 0; c < channels; ++c) out.chosen.push_back(out.lanes + c);
    out.lanes += align_up(channels, kAtom);
  }
  return out;
}

Conv make_joined(const Joined& joined) {
  Conv conv{.in = joined.from(), .out = joined.to};
  choose(conv, joined.chosen);
  return conv;
}

}  // namespace skillet::npus::rockchip
