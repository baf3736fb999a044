// Ops that compute each pixel from other pixels, alike for every channel, become a 1x1 convolution whose channels are
// the pixels, for chips that cannot pad windows, mirror or resize. Where kernels round away from a turning point, which
// no convolution does, two convolutions compute the parts above and below it, each clamped there by the end of the byte
// range, and are added. If within a step is enough, one suffices. Larger images: resize.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/fixed_point.h"
#include "graph/passes/lower/mixture.h"
#include "graph/passes/lower/pointwise.h"
#include "graph/passes/lower/resize.h"

namespace skillet::passes {
namespace {

constexpr int64_t kFilterMax = 1 << 22;  // weights
constexpr int64_t kMacsMax = 1 << 24;    // more take longer than on the CPU
constexpr std::array kUnits = {1, 2, 4, 7, 8, 14, 16, 32, 64, 127, 112, 96, 80};

// `unit`: the weight of each part. `bias` is added to the sum. `zero`: the zero point of the result.
struct Filter {
  int32_t unit = 1, bias = 0, zero = 0;
};

struct Range {
  int64_t lowest = 0, highest = 255;
};
Range bytes_of(const ir::Tensor& tensor) { return tensor.dtype == ir::DType::int8 ? Range{-128, 127} : Range{0, 255}; }

class Search {
 public:
  Search(const Mixture& mixture, const ir::Tensor& from, const ir::Tensor& to)
      : mixture_(mixture),
        from_(from),
        to_(to),
        bytes_(bytes_of(from)),
        most_(mixture.most()),
        weight_max_(static_cast<int32_t>(bytes_.highest)) {}

  // One filter for the whole range.
  std::optional<Filter> whole() const {
    const int32_t zero = to_.quant.zero_point();
    return find({.zero = zero, .sum = mixture_.whole * int64_t{from_.quant.zero_point()}, .value = zero},
                mixture_.rounded);
  }
  // Filters for the parts above the turn, from the lowest byte up, and below it, from the highest byte down. Their zero
  // points add up to the rest.
  std::optional<std::array<Filter, 2>> halves() const {
    const int64_t lowest = bytes_.lowest, highest = bytes_.highest, at_turn = mixture_.at_turn;
    const int64_t rest = lowest + highest - at_turn + to_.quant.zero_point();
    const int64_t above = std::max(lowest, rest - highest), below = rest - above;
    if (above > highest || below < lowest) return std::nullopt;
    const auto upper = find({above, mixture_.turn, lowest}, [&](int64_t sum) {
      return lowest + std::max<int64_t>(mixture_.rounded(sum) - at_turn, 0);
    });
    if (!upper) return std::nullopt;
    const auto lower = find({below, mixture_.turn, highest}, [&](int64_t sum) {
      return highest + std::min<int64_t>(mixture_.rounded(sum) - at_turn, 0);
    });
    if (!lower) return std::nullopt;
    return std::array{*upper, *lower};
  }

  // One filter for the whole range, if a chip's result is within a step.
  std::optional<Filter> near() const {
    const int64_t whole = mixture_.whole, zero = whole * from_.quant.zero_point();
    for (const int32_t unit : kUnits) {
      const double multiplier = conv_multiplier(from_, scale(unit), to_) * unit;
      if (int64_t{unit} * most_ > weight_max_ || !(multiplier > 0) || multiplier >= unit) continue;
      bool is_near = true;
      for (int64_t sum = whole * bytes_.lowest; is_near && sum <= whole * bytes_.highest; ++sum) {
        const double real = static_cast<double>(sum - zero) * multiplier + to_.quant.zero_point();
        is_near = rounds_within_a_step(
            std::clamp(real, static_cast<double>(bytes_.lowest), static_cast<double>(bytes_.highest)),
            static_cast<double>(std::clamp(mixture_.rounded(sum), bytes_.lowest, bytes_.highest)));
      }
      if (is_near) return Filter{unit, 0, to_.quant.zero_point()};
    }
    return std::nullopt;
  }

  float scale(int32_t unit) const { return static_cast<float>(1.0 / (static_cast<double>(mixture_.whole) * unit)); }

 private:
  // The zero point of a result, and one pair of a sum and its value.
  struct Aim {
    int64_t zero = 0, sum = 0, value = 0;
  };
  // `wanted` is compared for every possible sum.
  template <typename Wanted>
  std::optional<Filter> find(const Aim& aim, const Wanted& wanted) const {
    for (const int32_t unit : kUnits) {
      const double multiplier = conv_multiplier(from_, scale(unit), to_);
      if (int64_t{unit} * most_ > weight_max_ || !(multiplier > 0)) continue;
      const int64_t sum = unit * (aim.sum - mixture_.whole * int64_t{from_.quant.zero_point()});
      const double middle = static_cast<double>(aim.value - aim.zero) / multiplier - static_cast<double>(sum);
      for (const double off : offsets(unit, multiplier)) {
        const double bias = std::nearbyint(middle + off);
        if (!(std::abs(bias) < 1 << 24)) continue;
        const Filter filter{unit, static_cast<int32_t>(bias), static_cast<int32_t>(aim.zero)};
        if (gives(filter, multiplier, wanted)) return filter;
      }
    }
    return std::nullopt;
  }
  static std::array<double, 9> offsets(int32_t unit, double multiplier) {
    const double fraction = std::ldexp(0.5, quantize_multiplier(multiplier).shift) / multiplier;
    return {0, 1, -1, 2, -2, unit / 2.0, -unit / 2.0, fraction, -fraction};
  }

  template <typename Wanted>
  bool gives(const Filter& filter, double multiplier, const Wanted& wanted) const {
    const QuantizedMultiplier by = quantize_multiplier(multiplier);
    if (by.shift > 0) return false;  // larger sums would overflow 32 bits
    const int64_t whole = mixture_.whole, zero = whole * from_.quant.zero_point();
    const auto byte = [&](int64_t value) { return std::clamp(value, bytes_.lowest, bytes_.highest); };
    for (int64_t sum = whole * bytes_.lowest; sum <= whole * bytes_.highest; ++sum) {
      const auto moved = static_cast<int32_t>(filter.unit * (sum - zero) + filter.bias);
      const int64_t got = multiply_by_quantized_multiplier(moved, by) + int64_t{filter.zero};
      if (byte(got) != byte(wanted(sum))) return false;
    }
    return true;
  }

  const Mixture& mixture_;
  const ir::Tensor &from_, &to_;
  const Range bytes_;
  const int32_t most_, weight_max_;
};

class Writer {
 public:
  Writer(Rewriter& rewriter, const Mixture& mixture, const Search& search)
      : rewriter_(rewriter),
        mixture_(mixture),
        search_(search),
        from_(rewriter.tensor(mixture.from)),
        to_(rewriter.tensor(mixture.to)),
        outputs_(static_cast<int32_t>(mixture.pixels.size())) {}

  std::vector<ir::Op> write(std::span<const Filter> filters) {
    const int32_t channels = from_.shape[3];
    const auto inputs = static_cast<int32_t>(from_.shape.elems() / channels);
    const ir::TensorId planes = rewriter_.add_like(from_, "/planes", {1, channels, from_.shape[1], from_.shape[2]});
    const ir::TensorId image = rewriter_.add_like(from_, "/pixels", as_image(channels, inputs));
    ops_.push_back(rewriter_.transpose(mixture_.from, planes, {0, 3, 1, 2}));
    ops_.push_back(rewriter_.reshape(planes, image));
    const ir::TensorId sums = rewriter_.add_like(to_, "/pixels", as_image(channels, outputs_));
    if (filters.size() == 1) {
      convolve(image, sums, filters[0], mixture_.activation);
    } else {
      const ir::TensorId above = add_zero("/above", sums, filters[0].zero);
      const ir::TensorId below = add_zero("/below", sums, filters[1].zero);
      convolve(image, above, filters[0], ir::Activation::none);
      convolve(image, below, filters[1], ir::Activation::none);
      ops_.push_back({.kind = ir::OpKind::add,
                      .attrs = ir::ActivationAttrs{mixture_.activation},
                      .inputs = {above, below},
                      .outputs = {sums}});
    }
    return_from(sums, channels);
    return std::move(ops_);
  }

 private:
  ir::TensorId add_zero(const char* what, ir::TensorId sums, int32_t zero) {
    ir::Tensor one = rewriter_.tensor(sums);
    one.name = to_.name + what;
    one.quant.zero_points = {zero};
    return rewriter_.add(std::move(one));
  }
  void return_from(ir::TensorId sums, int32_t channels) {
    if (outputs_ == 1) {
      ops_.push_back(rewriter_.reshape(sums, mixture_.to));
      return;
    }
    const bool is_image = to_.shape.rank() == 4;
    const int32_t height = is_image ? to_.shape[1] : mixture_.height, width = is_image ? to_.shape[2] : mixture_.width;
    const ir::TensorId planes = rewriter_.add_like(to_, "/planes", {1, channels, height, width});
    ops_.push_back(rewriter_.reshape(sums, planes));
    const ir::TensorId image = is_image ? mixture_.to : rewriter_.add_like(to_, "/image", {1, height, width, channels});
    ops_.push_back(rewriter_.transpose(planes, image, {0, 2, 3, 1}));
    if (!is_image) ops_.push_back(rewriter_.reshape(image, mixture_.to));
  }
  void convolve(ir::TensorId image, ir::TensorId to, const Filter& filter, ir::Activation activation) {
    const auto inputs = static_cast<size_t>(rewriter_.tensor(image).shape[3]);
    Bytes weights(static_cast<size_t>(outputs_) * inputs, 0);
    for (size_t i = 0; i < mixture_.pixels.size(); ++i) {
      for (const MixturePart& part : mixture_.pixels[i])
        weights[i * inputs + static_cast<size_t>(part.pixel)] += static_cast<uint8_t>(filter.unit * part.amount);
    }
    const std::string name = rewriter_.tensor(to).name;
    const float scale = search_.scale(filter.unit), sum_scale = from_.quant.scale() * scale;
    const ir::ConvAttrs attrs{.padding = ir::Padding::valid, .activation = activation};
    ir::Op op{.kind = ir::OpKind::conv_2d, .attrs = attrs, .inputs = {image}};
    op.inputs.push_back(rewriter_.add_constant(name + "/parts", from_.dtype,
                                               {outputs_, 1, 1, static_cast<int32_t>(inputs)}, std::move(weights),
                                               {{scale}, {0}, 0}));
    op.inputs.push_back(rewriter_.add_ints(name + "/bias", std::vector(mixture_.pixels.size(), filter.bias), {},
                                           {{sum_scale}, {0}, 0}));
    op.outputs = {to};
    ops_.push_back(std::move(op));
  }

  Rewriter& rewriter_;
  const Mixture& mixture_;
  const Search& search_;
  const ir::Tensor from_, to_;
  const int32_t outputs_;
  std::vector<ir::Op> ops_;
};

bool is_small(const ir::Shape& from, const ir::Shape& to) {
  if (from.rank() != 4 || to.rank() < 1) return false;
  const int64_t channels = std::max(from[3], 1), inputs = from.elems() / channels, outputs = to.elems() / channels;
  return outputs <= kFilterMax && inputs <= kFilterMax / std::max<int64_t>(outputs, 1) &&
         inputs * outputs <= kMacsMax / channels;
}

// True if each pixel is unchanged.
bool is_same(const Mixture& mixture) {
  for (size_t i = 0; i < mixture.pixels.size(); ++i) {
    const std::vector<MixturePart>& parts = mixture.pixels[i];
    if (parts.size() != 1 || parts[0].pixel != static_cast<int32_t>(i)) return false;
  }
  return mixture.activation == ir::Activation::none;
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.inputs.empty() || old.inputs[0] == ir::kNoTensor || old.outputs.size() != 1 ||
      rewriter.level(id) == Level::proven)
    return;
  const auto mixture = mixture_of(rewriter, id);
  if (!mixture) return;
  const ir::Tensor from = rewriter.tensor(mixture->from), to = rewriter.tensor(mixture->to);
  if (is_same(*mixture) && from.shape == to.shape && same_meaning(from, to)) {
    std::vector<ir::Op> ops = {rewriter.reshape(mixture->from, mixture->to)};
    rewriter.replace(
        {.ops = {id}, .kept = id, .by = std::move(ops), .text = fmt::format("{} becomes RESHAPE", ir::op_name(old))});
    return;
  }
  if (!is_small(from.shape, to.shape)) return;
  const Search search(*mixture, from, to);
  std::vector<Filter> filters;
  if (const auto whole = search.whole()) filters = {*whole};
  bool is_off = false;
  if (filters.empty() && rewriter.may_be_off()) {
    if (const auto one = search.near()) filters = {*one}, is_off = true;
  }
  if (filters.empty() && has_exact_steps(to)) {
    if (const auto two = search.halves()) filters = {two->begin(), two->end()};
  }
  if (filters.empty()) return;
  std::string text =
      fmt::format("{} becomes {}CONV_2D 1x1 of {} channels{}", ir::op_name(old), filters.size() == 1 ? "" : "two ",
                  from.shape.elems() / from.shape[3], filters.size() == 1 ? "" : " and ADD");
  std::vector<ir::Op> ops = Writer(rewriter, *mixture, search).write(filters);
  rewriter.replace(id, std::move(ops), std::move(text), is_off ? 1 : 0);
}

}  // namespace

std::vector<ir::Op> chosen_pixels(Rewriter& rewriter, ir::TensorId from, ir::TensorId to,
                                  std::span<const int32_t> pixels) {
  Mixture mixture{.from = from, .to = to};
  if (!is_small(rewriter.tensor(from).shape, rewriter.tensor(to).shape)) return {};
  for (const int32_t pixel : pixels) mixture.pixels.push_back({{pixel, 1}});
  mixture.rounded = [](int64_t sum) { return sum; };
  const ir::Tensor image = rewriter.tensor(from), result = rewriter.tensor(to);
  const Search search(mixture, image, result);
  const auto filter = search.whole();
  return filter ? Writer(rewriter, mixture, search).write({&*filter, 1}) : std::vector<ir::Op>();
}

void lower_resize_as_conv(Rewriter& rewriter, ir::OpId id) {
  rewrite(rewriter, id);
  resize_by_axes(rewriter, id);
  average_by_axes(rewriter, id);
  resize_by_edges(rewriter, id);
}

}  // namespace skillet::passes
