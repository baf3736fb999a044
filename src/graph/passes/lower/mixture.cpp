#include "graph/passes/lower/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/passes/lower/average.h"
#include "graph/passes/lower/picks.h"
#include "graph/ref/resize.h"

namespace skillet::passes {
namespace {

constexpr int64_t kPixelsMax = 1 << 10;    // in a mean
constexpr int64_t kElemsMax = 1 << 22;     // in an image
constexpr int32_t kWholeMax = 1 << 12;     // in windows
constexpr int32_t kFractionsMax = 1 << 4;  // in a resized row

bool is_image(const ir::Tensor& tensor) {
  return is_computed_byte(tensor) && tensor.shape.rank() == 4 && tensor.shape[0] == 1 && tensor.shape.elems() > 0 &&
         tensor.shape.elems() <= kElemsMax;
}

bool moves_pixels(ir::OpKind kind) {
  return kind == ir::OpKind::mirror_pad || kind == ir::OpKind::resize_nearest_neighbor || kind == ir::OpKind::slice ||
         kind == ir::OpKind::strided_slice || kind == ir::OpKind::gather;
}

// True if all channels of an output pixel come from one input pixel.
bool choose_pixels(const Rewriter& rewriter, const ir::Op& op, Mixture& out) {
  const std::vector<std::vector<int32_t>> elements = picked(rewriter, op);
  const int32_t channels = rewriter.tensor(out.from).shape[3];
  if (elements.size() != 1 || rewriter.tensor(out.to).shape[3] != channels) return false;
  for (size_t i = 0; i < elements[0].size(); ++i) {
    const int32_t first = elements[0][i - i % static_cast<size_t>(channels)];
    const auto channel = static_cast<int32_t>(i % static_cast<size_t>(channels));
    if (first < 0 || first % channels != 0 || elements[0][i] != first + channel) return false;
    if (channel == 0) out.pixels.push_back({{first / channels, 1}});
  }
  out.rounded = [](int64_t sum) { return sum; };
  return true;
}

// Rounds half away from zero.
void round_bytes(Mixture& out) {
  out.rounded = [whole = int64_t{out.whole}](int64_t sum) {
    return (2 * sum + (sum > 0 ? whole : -whole)) / (2 * whole);
  };
}

// Number of parts in a row, such that each tap has a whole number of them; 0: too many.
int32_t fractions(const std::vector<ref::BilinearTap>& taps) {
  for (int32_t parts = 1; parts <= kFractionsMax; parts *= 2) {
    const auto is_whole = [&](const ref::BilinearTap& tap) {
      return std::floor(tap.from_low * parts) == tap.from_low * parts;
    };
    if (std::ranges::all_of(taps, is_whole)) return parts;
  }
  return 0;
}

// Reduces the number of parts, if all amounts have a common factor.
void shorten(Mixture& out) {
  int32_t common = out.whole;
  for (const auto& parts : out.pixels) {
    for (const MixturePart& part : parts) common = std::gcd(common, part.amount);
  }
  for (auto& parts : out.pixels) {
    for (MixturePart& part : parts) part.amount /= common;
  }
  out.whole /= common;
}

bool interpolate(const Rewriter& rewriter, const ir::Op& op, Mixture& out) {
  const ir::Tensor &from = rewriter.tensor(out.from), &to = rewriter.tensor(out.to);
  const auto& attrs = op.as<ir::ResizeAttrs>();
  const auto rows = ref::bilinear_taps(from.dtype, from.shape[1], to.shape[1], attrs);
  const auto columns = ref::bilinear_taps(from.dtype, from.shape[2], to.shape[2], attrs);
  const int32_t row_parts = fractions(rows), column_parts = fractions(columns);
  out.whole = row_parts * column_parts;
  if (out.whole == 0 || !rewriter.tensor(op.inputs[1]).is_constant()) return false;
  const auto width = static_cast<size_t>(from.shape[2]);
  for (const ref::BilinearTap& y : rows) {
    const auto below = static_cast<int32_t>(y.from_low * row_parts);
    for (const ref::BilinearTap& x : columns) {
      const auto right = static_cast<int32_t>(x.from_low * column_parts);
      std::vector<MixturePart>& parts = out.pixels.emplace_back();
      const auto add = [&](size_t row, size_t column, int32_t amount) {
        const auto pixel = static_cast<int32_t>(row * width + column);
        const auto known = std::ranges::find(parts, pixel, &MixturePart::pixel);
        if (known == parts.end())
          parts.push_back({pixel, amount});
        else
          known->amount += amount;
      };
      add(y.low, x.low, (row_parts - below) * (column_parts - right));
      add(y.low, x.high, (row_parts - below) * right);
      add(y.high, x.low, below * (column_parts - right));
      add(y.high, x.high, below * right);
      std::erase_if(parts, [](const MixturePart& part) { return part.amount == 0; });
    }
  }
  shorten(out);
  round_bytes(out);
  return true;
}

// Pixels outside the image do not count.
bool pool(const Rewriter& rewriter, const ir::Op& op, Mixture& out) {
  const auto& attrs = op.as<ir::PoolAttrs>();
  const ir::Tensor &from = rewriter.tensor(out.from), &to = rewriter.tensor(out.to);
  if (attrs.rows || !same_meaning(from, to)) return false;
  const int32_t height = from.shape[1], width = from.shape[2];
  const bool pads = attrs.padding == ir::Padding::same;
  const int32_t above = pads ? same_pads(height, attrs.filter_h, attrs.stride_h, 1).before : 0;
  const int32_t left = pads ? same_pads(width, attrs.filter_w, attrs.stride_w, 1).before : 0;
  for (int32_t row = 0; row < to.shape[1]; ++row) {
    for (int32_t column = 0; column < to.shape[2]; ++column) {
      std::vector<MixturePart>& parts = out.pixels.emplace_back();
      const int64_t y = int64_t{row} * attrs.stride_h - above, x = int64_t{column} * attrs.stride_w - left;
      for (int64_t v = std::max<int64_t>(y, 0); v < std::min<int64_t>(y + attrs.filter_h, height); ++v)
        for (int64_t u = std::max<int64_t>(x, 0); u < std::min<int64_t>(x + attrs.filter_w, width); ++u)
          parts.push_back({static_cast<int32_t>(v * width + u), 1});
      if (parts.empty() || std::ssize(parts) > kWholeMax) return false;
      out.whole = std::lcm(out.whole, static_cast<int32_t>(parts.size()));
      if (out.whole > kWholeMax) return false;
    }
  }
  for (std::vector<MixturePart>& parts : out.pixels) {
    const int32_t each = out.whole / static_cast<int32_t>(parts.size());
    for (MixturePart& part : parts) part.amount = each;
  }
  out.activation = attrs.activation;
  round_bytes(out);
  return true;
}

bool mean(const Rewriter& rewriter, const ir::Op& op, Mixture& out) {
  const auto average = average_of(rewriter, op);
  const ir::Tensor &from = rewriter.tensor(out.from), &to = rewriter.tensor(out.to);
  if (!average || from.shape[0] != 1 || average->pixels() > kPixelsMax) return false;
  out.whole = static_cast<int32_t>(average->pixels());
  out.height = from.shape[1] / average->rows;
  out.width = from.shape[2] / average->columns;
  for (int32_t result = 0; result < out.height * out.width; ++result) {
    const int32_t first = result / out.width * from.shape[2] + result % out.width;
    std::vector<MixturePart>& parts = out.pixels.emplace_back();
    for (int32_t part = 0; part < out.whole; ++part)
      parts.push_back({first + part / average->columns * from.shape[2] + part % average->columns, 1});
  }
  out.rounded = AverageRounding(*average, from, to);
  out.turn = int64_t{out.whole} * from.quant.zero_point();
  out.at_turn = to.quant.zero_point();
  return true;
}

}  // namespace

int32_t Mixture::most() const {
  int32_t most = 0;
  for (const auto& parts : pixels) {
    for (const MixturePart& part : parts) most = std::max(most, part.amount);
  }
  return most;
}

std::optional<Mixture> mixture_of(const Rewriter& rewriter, ir::OpId id) {
  const ir::Op& op = rewriter.op(id);
  const bool is_mean = op.kind == ir::OpKind::mean, chooses = moves_pixels(op.kind);
  if (!is_mean && !chooses && op.kind != ir::OpKind::resize_bilinear && op.kind != ir::OpKind::average_pool_2d)
    return std::nullopt;
  Mixture out{.from = op.inputs[0], .to = op.outputs[0]};
  const ir::Tensor &from = rewriter.tensor(out.from), &to = rewriter.tensor(out.to);
  if (!is_image(from)) return std::nullopt;
  if (is_mean) return mean(rewriter, op, out) ? std::optional(out) : std::nullopt;
  if (!is_image(to) || !same_meaning(from, to)) return std::nullopt;
  if (chooses) return choose_pixels(rewriter, op, out) ? std::optional(out) : std::nullopt;
  const bool is_pool = op.kind == ir::OpKind::average_pool_2d;
  return (is_pool ? pool : interpolate)(rewriter, op, out) ? std::optional(out) : std::nullopt;
}

}  // namespace skillet::passes
