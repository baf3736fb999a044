// Pooling: the largest value of a window, its average, or the sum of all channels (hardware specification,
// section 8.4).
#include "npus/ethosu/sim/operation.h"

namespace skillet::sim::ethosu {
namespace {

class Pooling {
 public:
  Pooling(Context& context, Output output, hw::PoolMode mode)
      : context_(context), output_(std::move(output)), mode_(mode) {}

  Result<void> run() {
    SK_TRY_ASSIGN(windows_, windows_of(context_, output_.map()));
    input_ = input_of(context_.registers, context_.chip);
    input_.height = windows_.input_height();
    input_.width = windows_.input_width();
    input_.depth =
        mode_ == hw::PoolMode::reduce_sum ? context_.registers.get<hw::IfmDepthM1>().value : output_.map().depth;
    if (mode_ == hw::PoolMode::reduce_sum && output_.map().depth != 1)
      return error(ErrorCode::fault, "ofm_depth_m1 {}: REDUCE_SUM makes one channel", output_.map().depth);
    const bool is_u85 = context_.chip.generation() == hw::Generation::u85;
    divides_ = mode_ == hw::PoolMode::average && (is_u85 || windows_.is_padded());
    if (mode_ == hw::PoolMode::argmax_x &&
        (windows_.height != 1 || windows_.is_padded() || windows_.upscale != hw::Upscale::none))
      return error(ErrorCode::unsupported,
                   "op_pool.mode argmax_x over rows, padding or an enlarged input is not modelled");
    SK_TRY(set_scale());
    const FeatureMap& output = output_.map();
    SK_TRY(check_room(output, context_));
    SK_TRY_ASSIGN(const std::vector<int32_t> values, load(input_, context_));
    SK_TRY(context_.work.spend({output.height, output.width, windows_.taps(), kRunWork + input_.depth}));
    std::vector<int32_t> results(static_cast<size_t>(output.elems()));
    SK_TRY(compute(values, results));
    return store(output, results, context_);
  }

 private:
  // Sets the scale to the operation's own, if it has one, else 1.
  Result<void> set_scale() {
    if (output_.has_scale_per_channel()) return {};
    const auto scale = context_.registers.get<hw::OfmScale>();
    scale_ = {scale.scale, scale.shift};
    if (divides_ && scale_.scale != uint64_t{1} << scale_.shift)
      return error(ErrorCode::unsupported,
                   "ofm_scale of an average that divides itself is not modelled: it is not known");
    return {};
  }

  Result<void> compute(const std::vector<int32_t>& values, std::vector<int32_t>& results) const {
    const FeatureMap& output = output_.map();
    std::vector<int64_t> sums(output.depth);
    size_t at = 0;
    for (uint32_t y = 0; y < output.height; ++y) {
      for (uint32_t x = 0; x < output.width; ++x) {
        SK_TRY(check_stop());
        const uint32_t taps = collect(values, y, x, sums);
        for (const int64_t sum : sums) results[at++] = output_.stored(scaled(sum, taps));
      }
    }
    return {};
  }

  int64_t scaled(int64_t sum, uint32_t taps) const {
    if (mode_ == hw::PoolMode::argmax_x) return sum;
    if (!divides_) return output_.scaled(sum, scale_, input_);
    return taps == 0 ? 0 : rescale(sum, scale_of_average(taps), hw::Rounding::natural);
  }

  // Returns the number of taps that are not padding.
  uint32_t collect(const std::vector<int32_t>& values, uint32_t y, uint32_t x, std::vector<int64_t>& sums) const {
    std::ranges::fill(sums, mode_ == hw::PoolMode::max ? INT32_MIN : 0);
    uint32_t taps = 0;
    for (uint32_t ky = 0; ky < windows_.height; ++ky) {
      const int64_t row = windows_.row(y, ky);
      for (uint32_t kx = 0; row >= 0 && kx < windows_.width; ++kx) {
        const int64_t column = windows_.column(x, kx);
        if (column < 0) continue;
        ++taps;
        if (mode_ == hw::PoolMode::argmax_x) {
          keep_index(values, static_cast<size_t>(row) * input_.width + static_cast<size_t>(column), kx, sums);
          continue;
        }
        const int32_t* const pixel =
            values.data() + (static_cast<size_t>(row) * input_.width + static_cast<size_t>(column)) * input_.depth;
        add(pixel, sums);
      }
    }
    return taps;
  }

  // Keeps the index of the first of the largest values.
  void keep_index(const std::vector<int32_t>& values, size_t pixel, uint32_t tap, std::vector<int64_t>& sums) const {
    for (size_t c = 0; c < sums.size(); ++c) {
      const auto value_at = [&](int64_t back) {
        return values[(pixel - static_cast<size_t>(back)) * input_.depth + c];
      };
      if (tap == 0 || value_at(0) > value_at(int64_t{tap} - sums[c])) sums[c] = tap;
    }
  }

  void add(const int32_t* pixel, std::vector<int64_t>& sums) const {
    if (mode_ == hw::PoolMode::reduce_sum) {
      for (uint32_t c = 0; c < input_.depth; ++c) sums[0] += int64_t{pixel[c]} - input_.zero_point;
      return;
    }
    for (size_t c = 0; c < sums.size(); ++c) {
      const int64_t value = int64_t{pixel[c]} - input_.zero_point;
      sums[c] = mode_ == hw::PoolMode::max ? std::max(sums[c], value) : sums[c] + value;
    }
  }

  Context& context_;
  Output output_;
  hw::PoolMode mode_;
  Windows windows_;
  FeatureMap input_;
  bool divides_ = false;  // by the number of taps that are not padding
  Scale scale_;
};

}  // namespace

Result<void> pool(Context& context, hw::PoolMode mode) {
  const bool is_u85 = context.chip.generation() == hw::Generation::u85;
  const bool is_of_u85 = mode == hw::PoolMode::sum || mode == hw::PoolMode::argmax_x;
  if (mode > hw::PoolMode::reduce_sum && !(is_u85 && is_of_u85))
    return error(ErrorCode::unsupported, "op_pool.mode {} is unknown, or not modelled", static_cast<int>(mode));
  SK_TRY_ASSIGN(Output output, Output::of(context, mode == hw::PoolMode::argmax_x));
  return Pooling(context, std::move(output), mode).run();
}

}  // namespace skillet::sim::ethosu
