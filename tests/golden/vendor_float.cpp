#include "vendor_float.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/int_math.h"
#include "vendor_operands.h"

namespace skillet::golden {
namespace {

constexpr int32_t kAtom = 16, kOverRead = 32768;

template <typename Visit>
void taps(const VendorOp& op, const Surfaces& in, int32_t y, int32_t x, Visit visit) {
  for (int32_t ky = 0; ky < op.kernel_height; ++ky) {
    for (int32_t kx = 0; kx < op.kernel_width; ++kx) {
      const int32_t row = y * op.stride_y + ky - op.pad_top, column = x * op.stride_x + kx - op.pad_left;
      if (row >= 0 && row < in.height && column >= 0 && column < in.width)
        visit(row, column, ky * op.kernel_width + kx);
    }
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hard_sigmoid(double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double elu(double x) { return x > 0 ? x : std::expm1(x); }
double mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }
double swish(double x) { return x * sigmoid(x); }
double hard_swish(double x) { return x * hard_sigmoid(x); }
double leaky_relu(double x) { return x < 0 ? kSlope * x : x; }
// The DPU computes the operand of the root, and the CPU the root.
double below_root(double x) { return std::max(x, 0.0); }
double tanh_of(double x) { return std::tanh(x); }

struct Named {
  std::string_view name;
  Function function = nullptr;
  double most = HUGE_VAL;
};
constexpr Named kFunctions[] = {
    {"_sigmoid_", sigmoid, 7}, {"_hardsigmoid_", hard_sigmoid, 3}, {"_elu_", elu},      {"_mish_", mish},
    {"_swish_", swish},        {"_hardswish_", hard_swish},        {"_tanh_", tanh_of}, {"_leakyrelu_", leaky_relu},
    {"_sqrt_", below_root}};

Named named(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const Named& one) {
    return (name + "_").find(one.name) != std::string::npos;
  });
  return found == std::end(kFunctions) ? Named{} : *found;
}

}  // namespace

bool is_pool(const VendorOp& op) { return op.type == "maxpool" || op.type.starts_with("avgpool"); }

Surfaces::Surfaces(int32_t h, int32_t w, int32_t c, int64_t p)
    : height(h), width(w), channels(c), pitch(p), bytes(static_cast<size_t>(p * ceil_div(c, kAtom) + kOverRead)) {}

size_t Surfaces::at(int32_t y, int32_t x, int32_t c) const {
  return static_cast<size_t>(c / kAtom * pitch + (int64_t{y} * width + x) * kAtom + c % kAtom);
}

double FloatModel::real(int32_t y, int32_t x, int32_t channel) const {
  constexpr double kSix = 6;
  double sum = s_.conv.bias[static_cast<size_t>(channel)];
  const int32_t inputs = s_.op.type == "depthwise" ? 1 : s_.op.in_channels;
  for (int32_t i = 0; i < inputs; ++i) sum += products(y, x, channel, i, inputs);
  if (s_.words.has_slope) sum = leaky_relu(sum);
  if (s_.words.is_limited) sum = std::max(sum, 0.0);
  if (s_.words.is_limited && s_.words.limit != INT32_MAX) sum = std::min(sum, kSix);
  return sum;
}

double FloatModel::of(int32_t y, int32_t x, int32_t channel) const {
  if (is_pool(s_.op)) return pooled(y, x, channel);
  return real(y, x, channel) / s_.out.scale + s_.out.zero;
}

double FloatModel::products(int32_t y, int32_t x, int32_t channel, int32_t input, int32_t inputs) const {
  const auto count = static_cast<size_t>(s_.op.kernel_height * s_.op.kernel_width), o = static_cast<size_t>(channel);
  const int32_t from = inputs == 1 && s_.op.type == "depthwise" ? channel : input;
  double sum = 0;
  taps(s_.op, in_, y, x, [&](int32_t row, int32_t column, int32_t tap) {
    const int32_t w =
        s_.q.weights[(o * static_cast<size_t>(inputs) + static_cast<size_t>(input)) * count + static_cast<size_t>(tap)];
    sum += double{s_.q.scales[o]} * w * in_.real(row, column, from, s_.in);
  });
  return sum;
}

double FloatModel::pooled(int32_t y, int32_t x, int32_t channel) const {
  double sum = 0, most = INT8_MIN;
  int32_t count = 0;
  taps(s_.op, in_, y, x, [&](int32_t row, int32_t column, int32_t) {
    sum += in_.value(row, column, channel), ++count;
    most = std::max<double>(most, in_.value(row, column, channel));
  });
  return s_.op.type == "maxpool" ? most : sum / std::max(count, 1);
}

Function function_of(const std::string& name) { return named(name).function; }
double most_of(const std::string& name) { return named(name).most; }

ReplayRow compare_surfaces(const Surfaces& out,
                           const std::function<double(int32_t y, int32_t x, int32_t channel)>& model) {
  ReplayRow row{.result = ReplayClass::exact, .reason = {}};
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      for (int32_t c = 0; c < out.channels; ++c) {
        const double exact = std::clamp<double>(std::rint(model(y, x, c)), INT8_MIN, INT8_MAX);
        const int difference = std::abs(out.value(y, x, c) - static_cast<int>(exact));
        ++row.elements;
        row.differing += difference != 0;
        row.max_difference = std::max(row.max_difference, difference);
      }
    }
  }
  if (row.differing > 0) row.result = row.max_difference <= 1 ? ReplayClass::within_1 : ReplayClass::worse;
  return row;
}

}  // namespace skillet::golden
