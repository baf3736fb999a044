// Only this source file includes Eigen.
#include "graph/quantize/rounding.h"

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace skillet::quantize {
namespace {

using passes::WeightedLayer;
using Rows = Eigen::Map<const Eigen::MatrixXf>;  // rows x taps

// Factors of the mean of the diagonal; the second grows as rows get scarce relative to taps.
constexpr double kDamping = 0.003, kScarceDamping = 0.3;
constexpr double kLeastDamping = 1e-3;   // for inputs that never change
constexpr Eigen::Index kTapsMax = 2304;  // above this, several parts: time is cubic, memory quadratic
constexpr Eigen::Index kBlock = 64;      // columns whose effect on the rest is applied at once
constexpr double kBiasEnd = 1 << 30;

Rows rows_of(const Samples& samples, size_t matrix) {
  return {samples.values.data() + matrix * samples.taps * samples.rows, static_cast<Eigen::Index>(samples.rows),
          static_cast<Eigen::Index>(samples.taps)};
}

// Channels that use one matrix of the samples.
struct Span {
  size_t first = 0, count = 0;
};
Span channels_of(const Samples& samples, const WeightedLayer& layer, size_t matrix) {
  const size_t each = layer.channels() / samples.matrices;
  return {matrix * each, each};
}

// ---- scales ----

// The least scale that can represent a channel's weights; 0: all are 0.
float needed_scale(const WeightedLayer& layer, size_t c) {
  int largest = 0;
  for (size_t t = 0; t < layer.taps; ++t) largest = std::max(largest, std::abs(int{layer.weights[c * layer.taps + t]}));
  return layer.scales[c] * static_cast<float>(std::min(largest, 127)) / 127;
}

// The shared scale of each channel.
std::vector<float> shared_scales(const WeightedLayer& layer, size_t count) {
  std::vector<float> needed;
  for (size_t c = 0; c < layer.channels(); ++c) needed.push_back(needed_scale(layer, c));
  std::vector<size_t> order(layer.channels());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t c) { return needed[c]; });
  if (needed[order.front()] == 0) return std::vector<float>(layer.channels(), std::ranges::max(layer.scales));
  const size_t zeros = static_cast<size_t>(std::ranges::count(needed, 0.0F));
  for (size_t i = order.size() - zeros; i < order.size(); ++i) needed[order[i]] = needed[order[i - 1]];
  std::vector<float> out(layer.channels());
  for (const auto& run : passes::fewest_runs(needed, order, count)) {
    for (const size_t c : run) out[c] = needed[run.front()];
  }
  return out;
}

// ---- one channel ----

double ratio_of(const WeightedLayer& before, const std::vector<float>& scales, size_t c) {
  return double{before.scales[c]} / scales[c];
}

// Sets the bias such that the outputs keep their mean; false if it does not fit.
bool set_bias(const WeightedLayer& before, WeightedLayer& after, size_t c, const Eigen::VectorXd& mean) {
  const double ratio = double{before.scales[c]} / after.scales[c];
  double bias = before.biases[c] * ratio;
  for (size_t t = 0; t < before.taps; ++t) {
    const size_t at = c * before.taps + t;
    bias += mean[static_cast<Eigen::Index>(t)] * (before.weights[at] * ratio - after.weights[at]);
  }
  if (!(std::abs(bias) < kBiasEnd)) return false;
  after.biases[c] = static_cast<int32_t>(std::lround(bias));
  return true;
}

Eigen::VectorXd mean_of(const Rows& rows) {
  if (rows.rows() == 0) return Eigen::VectorXd::Zero(rows.cols());
  return rows.cast<double>().colwise().mean().transpose();
}

// ---- errors ----

// Errors of the channels of one matrix, in order.
std::vector<Fit> fits_of(const WeightedLayer& before, const WeightedLayer& after, const Rows& rows, Span channels,
                         Limits limits) {
  const auto taps = static_cast<Eigen::Index>(before.taps), count = static_cast<Eigen::Index>(channels.count);
  Eigen::MatrixXf own(taps, count), off(taps, count);
  for (Eigen::Index c = 0; c < count; ++c) {
    const size_t channel = channels.first + static_cast<size_t>(c);
    for (Eigen::Index t = 0; t < taps; ++t) {
      const size_t at = channel * before.taps + static_cast<size_t>(t);
      const double from = before.weights[at] * double{before.scales[channel]};
      own(t, c) = static_cast<float>(from * before.step);
      off(t, c) = static_cast<float>((after.weights[at] * double{after.scales[channel]} - from) * before.step);
    }
  }
  const Eigen::MatrixXf outputs = rows * own, errors = rows * off;
  std::vector<Fit> out(channels.count);
  for (Eigen::Index c = 0; c < count; ++c) {
    const size_t channel = channels.first + static_cast<size_t>(c);
    const double bias = before.biases[channel] * double{before.scales[channel]} * before.step;
    const double bias_off = after.biases[channel] * double{after.scales[channel]} * before.step - bias;
    Fit& fit = out[static_cast<size_t>(c)];
    for (Eigen::Index r = 0; r < rows.rows(); ++r) {
      const double output = outputs(r, c) + bias, error = std::abs(errors(r, c) + bias_off);
      if (output < limits.low || output > limits.high) continue;
      fit.squares += error * error;
      fit.worst = std::max(fit.worst, error);
      fit.beyond += error > 1 ? 1 : 0;
      ++fit.values;
    }
  }
  return out;
}

}  // namespace

double Fit::rms() const { return values == 0 ? 0 : std::sqrt(squares / static_cast<double>(values)); }

Fit fit_of(const WeightedLayer& before, const WeightedLayer& after, const Samples& samples, Limits limits) {
  Fit out;
  for (size_t m = 0; m < samples.matrices; ++m) {
    const Span channels = channels_of(samples, before, m);
    for (const Fit& one : fits_of(before, after, rows_of(samples, m), channels, limits)) {
      out.squares += one.squares;
      out.worst = std::max(out.worst, one.worst);
      out.values += one.values;
      out.beyond += one.beyond;
    }
  }
  return out;
}

WeightedLayer round_plainly(const WeightedLayer& layer, const Samples& samples, size_t scales) {
  WeightedLayer out = layer;
  out.scales = shared_scales(layer, scales);
  for (size_t m = 0; m < samples.matrices; ++m) {
    const Eigen::VectorXd mean = mean_of(rows_of(samples, m));
    const Span channels = channels_of(samples, layer, m);
    for (size_t c = channels.first; c < channels.first + channels.count; ++c) {
      const double ratio = ratio_of(layer, out.scales, c);
      if (ratio == 1) continue;
      for (size_t at = c * layer.taps; at < (c + 1) * layer.taps; ++at)
        out.weights[at] = static_cast<int8_t>(std::clamp(std::round(layer.weights[at] * ratio), -127.0, 127.0));
      if (!set_bias(layer, out, c, mean)) return layer;
    }
  }
  return out;
}

// ---- error feedback ----

// Correlation of the taps' errors: an upper triangular U such that U'U is the inverse of the covariance of some taps.
struct Part {
  std::vector<Eigen::Index> order;  // taps by importance, the largest first
  Eigen::MatrixXd u;
};
struct Rounding::Curvature {
  std::vector<Part> parts;
  Eigen::VectorXd mean;
};

namespace {

Eigen::MatrixXd covariance(const Eigen::MatrixXf& centred) {
  Eigen::MatrixXf sums = Eigen::MatrixXf::Zero(centred.cols(), centred.cols());
  sums.selfadjointView<Eigen::Lower>().rankUpdate(centred.transpose());
  sums.triangularView<Eigen::StrictlyUpper>() = sums.transpose();
  return sums.cast<double>() / std::max<double>(1, static_cast<double>(centred.rows()));
}

// With reversed taps the lower Cholesky factor becomes an upper one, whose inverse is U.
Part part_of(const Eigen::MatrixXf& centred, Eigen::Index first) {
  Eigen::MatrixXd h = covariance(centred);
  const double scarce = static_cast<double>(h.cols()) / std::max<double>(1, static_cast<double>(centred.rows()));
  h.diagonal().array() += (kDamping + kScarceDamping * scarce) * h.diagonal().mean() + kLeastDamping;
  const Eigen::Index taps = h.cols();
  Part out{.order = std::vector<Eigen::Index>(static_cast<size_t>(taps))};
  std::iota(out.order.begin(), out.order.end(), Eigen::Index{0});
  std::ranges::stable_sort(out.order, std::greater{}, [&](Eigen::Index t) { return h(t, t); });
  const std::vector<Eigen::Index> turned(out.order.rbegin(), out.order.rend());
  const Eigen::LLT<Eigen::MatrixXd> cholesky(Eigen::MatrixXd(h(turned, turned)));
  const Eigen::MatrixXd upper = Eigen::MatrixXd(cholesky.matrixL()).reverse();
  out.u = Eigen::MatrixXd::Identity(taps, taps);
  if (cholesky.info() == Eigen::Success) upper.triangularView<Eigen::Upper>().solveInPlace(out.u);
  for (Eigen::Index& tap : out.order) tap += first;
  return out;
}

// Rounds `v` (channels x taps, in the part's order); the error of each column is distributed over later columns.
void feed_back(const Eigen::MatrixXd& u, Eigen::MatrixXd& v) {
  const Eigen::Index taps = v.cols();
  Eigen::MatrixXd errors(v.rows(), std::min(kBlock, taps));
  for (Eigen::Index first = 0; first < taps; first += kBlock) {
    const Eigen::Index end = std::min(first + kBlock, taps);
    for (Eigen::Index t = first; t < end; ++t) {
      const Eigen::VectorXd rounded = v.col(t).array().round().max(-127.0).min(127.0);
      errors.col(t - first) = (v.col(t) - rounded) / u(t, t);
      v.col(t) = rounded;
      v.middleCols(t + 1, end - t - 1).noalias() -= errors.col(t - first) * u.row(t).segment(t + 1, end - t - 1);
    }
    v.rightCols(taps - end).noalias() -= errors.leftCols(end - first) * u.block(first, end, end - first, taps - end);
  }
}

void round_part(const WeightedLayer& before, WeightedLayer& after, Span channels, const Part& part) {
  const auto taps = static_cast<Eigen::Index>(part.order.size()), count = static_cast<Eigen::Index>(channels.count);
  Eigen::MatrixXd v(count, taps);
  const auto at = [&](Eigen::Index c, Eigen::Index t) {
    return (channels.first + static_cast<size_t>(c)) * before.taps +
           static_cast<size_t>(part.order[static_cast<size_t>(t)]);
  };
  for (Eigen::Index c = 0; c < count; ++c) {
    const double ratio = ratio_of(before, after.scales, channels.first + static_cast<size_t>(c));
    for (Eigen::Index t = 0; t < taps; ++t) v(c, t) = before.weights[at(c, t)] * ratio;
  }
  feed_back(part.u, v);
  for (Eigen::Index c = 0; c < count; ++c) {
    if (ratio_of(before, after.scales, channels.first + static_cast<size_t>(c)) == 1) continue;
    for (Eigen::Index t = 0; t < taps; ++t) after.weights[at(c, t)] = static_cast<int8_t>(v(c, t));
  }
}

void take_channel(const WeightedLayer& from, WeightedLayer& to, size_t c) {
  std::copy_n(from.weights.begin() + static_cast<std::ptrdiff_t>(c * from.taps), from.taps,
              to.weights.begin() + static_cast<std::ptrdiff_t>(c * from.taps));
  to.biases[c] = from.biases[c];
}

}  // namespace

Rounding::Rounding(const WeightedLayer& layer, const Samples& samples, Limits limits)
    : layer_(layer), samples_(samples), limits_(limits) {
  for (size_t m = 0; m < samples.matrices; ++m) {
    const Rows rows = rows_of(samples, m);
    Curvature one{.parts = {}, .mean = mean_of(rows)};
    for (Eigen::Index first = 0; first < rows.cols(); first += kTapsMax) {
      const Eigen::Index count = std::min(kTapsMax, rows.cols() - first);
      const Eigen::RowVectorXf mean = one.mean.segment(first, count).transpose().cast<float>();
      one.parts.push_back(part_of(rows.middleCols(first, count).rowwise() - mean, first));
    }
    curvatures_.push_back(std::move(one));
  }
}

Rounding::~Rounding() = default;

WeightedLayer Rounding::round(size_t scales) const {
  const WeightedLayer plain = round_plainly(layer_, samples_, scales);
  WeightedLayer out = layer_;
  out.scales = shared_scales(layer_, scales);
  if (plain.scales != out.scales) return layer_;  // a bias does not fit
  for (size_t m = 0; m < samples_.matrices; ++m) {
    const Span channels = channels_of(samples_, layer_, m);
    for (const Part& part : curvatures_[m].parts) round_part(layer_, out, channels, part);
    bool fits = true;
    for (size_t c = channels.first; c < channels.first + channels.count; ++c)
      fits = (ratio_of(layer_, out.scales, c) == 1 || set_bias(layer_, out, c, curvatures_[m].mean)) && fits;
    const Rows rows = rows_of(samples_, m);
    const std::vector<Fit> ours = fits_of(layer_, out, rows, channels, limits_);
    const std::vector<Fit> theirs = fits_of(layer_, plain, rows, channels, limits_);
    for (size_t i = 0; i < ours.size(); ++i) {
      if (!fits || ours[i].squares > theirs[i].squares) take_channel(plain, out, channels.first + i);
    }
  }
  return out;
}

}  // namespace skillet::quantize
