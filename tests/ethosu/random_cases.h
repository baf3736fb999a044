// Graphs of operations that Skillet lowers to others for Ethos-U, with random shapes and quantizations, from a seed.
// Called by operations_test.cpp and tests/conformance/emitted_test.cpp.
// Must not know: what the tests check.
#pragma once

#include <random>
#include <string>

#include "graph/ir/graph.h"

namespace skillet::ethosu_cases {

class Cases {
 public:
  explicit Cases(uint32_t seed) : random_(seed) { type_ = range(0, 1) == 0 ? "int8" : "uint8"; }

  std::string mean() { return reduced("MEAN", quant()); }
  std::string largest() { return reduced("REDUCE_MAX", ""); }
  std::string wide_mean() {
    type_ = "int16";
    return range(0, 2) == 0 ? largest() : mean();
  }
  std::string wide_resize() {
    type_ = "int16";
    return range(0, 1) == 0 ? bilinear() : nearest();
  }
  std::string bilinear() {
    const int h = range(1, 7), w = range(1, 7), times = 1 << range(1, 3);
    switch (range(0, 2)) {
      case 0: return resized("RESIZE_BILINEAR", h, w, h * times, w * times, "");
      case 1: return resized("RESIZE_BILINEAR", h, w, h * 2, w * 2, " half_pixel_centers=true");
      default: return resized("RESIZE_BILINEAR", h + 1, w + 1, h * times + 1, w * times + 1, " align_corners=true");
    }
  }
  std::string nearest() {
    const int h = range(1, 6), w = range(1, 6);
    switch (range(0, 2)) {
      case 0: return resized("RESIZE_NEAREST_NEIGHBOR", h, w, h << 2, w << 2, "");
      case 1: return resized("RESIZE_NEAREST_NEIGHBOR", h * 2, w * 3, h * 3, w * 2, " half_pixel_centers=true");
      default:
        return resized("RESIZE_NEAREST_NEIGHBOR", h + 1, w + 1, h * range(1, 4) + 1, w * 2 + 1, " align_corners=true");
    }
  }
  std::string transposed() {
    const int stride = range(1, 2), kernel = range(stride, 5), c = range(1, 40), n = range(1, 40);
    const int h = range(1, 7), w = range(1, 7);
    const bool same = range(0, 1) == 0;
    const auto size = [&](int in) { return same ? in * stride : in * stride + kernel - stride; };
    return fmt::format("tensor 0 \"size\" int32 4 const=[1 {} {} {}]\n", size(h), size(w), n) +
           filter(1, n, kernel, c) + image(2, h, w, c, quant()) + image(3, size(h), size(w), n, wide()) +
           fmt::format(
               "inputs 2\noutputs 3\nop 0 TRANSPOSE_CONV in=[0 1 2] out=[3] padding={} stride_h={} stride_w={}\n",
               same ? "same" : "valid", stride, stride);
  }
  std::string grouped() {
    const int groups = range(2, 5), c = range(2, 20), n = range(1, 20), kernel = range(1, 4), h = range(4, 9);
    return image(0, h, h, groups * c, quant()) + filter(1, groups * n, kernel, c) +
           fmt::format("tensor 2 \"bias\" int32 {} scale=0.001 zero=0 const=random:7\n", groups * n) +
           image(3, h, h, groups * n, wide()) +
           "inputs 0\noutputs 3\nop 0 CONV_2D in=[0 1 2] out=[3] padding=same activation=relu\n";
  }
  // More weights than fit on the chip at once.
  std::string sliced() {
    const int size = range(19, 21), c = range(320, 330), n = range(320, 380);
    return image(0, size, size, c, quant()) + filter(1, n, 1, c) +
           fmt::format("tensor 2 \"bias\" int32 {} scale=0.001 zero=0 const=random:7\n", n) +
           image(3, size, size, n, wide()) + filter(4, 8, 1, n) + image(5, size, size, 8, quant("20.")) +
           "inputs 0\noutputs 5\nop 0 CONV_2D in=[0 1 2] out=[3] padding=same\n" +
           "op 1 CONV_2D in=[3 4] out=[5] padding=same\n";
  }
  std::string prelu() {
    const int h = range(1, 9), w = range(1, 9), c = range(1, 40);
    return image(0, h, w, c, quant()) +
           fmt::format("tensor 1 \"t1\" {} 1x1x{} {} const=random:3\n", type_, c, quant()) +
           image(2, h, w, c, quant()) + "inputs 0\noutputs 2\nop 0 PRELU in=[0 1] out=[2]\n";
  }
  std::string blocks() {
    const int size = range(2, 3), h = range(1, 5), w = range(1, 5), c = range(1, 20);
    const std::string any = quant();
    const bool is_wide = range(0, 1) == 0;
    return image(0, is_wide ? h * size : h, is_wide ? w * size : w, is_wide ? c : c * size * size, any) +
           image(1, is_wide ? h : h * size, is_wide ? w : w * size, is_wide ? c * size * size : c, any) +
           fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] block_size={}\n",
                       is_wide ? "SPACE_TO_DEPTH" : "DEPTH_TO_SPACE", size);
  }
  // int16 with int8 weights; the type of the bias determines how sums are rounded.
  std::string wide_conv() {
    type_ = "int16";
    const bool is_depthwise = range(0, 2) == 0;
    const int multiplier = is_depthwise ? range(1, 3) : 1;
    const int kernel = range(1, 4), c = range(1, 40), n = range(1, 20) * multiplier, h = range(4, 9), w = range(4, 9);
    return image(0, h, w, is_depthwise ? n / multiplier : c, quant()) +
           weights(1, fmt::format("{}x{}x{}x{}", is_depthwise ? 1 : n, kernel, kernel, is_depthwise ? n : c), n,
                   is_depthwise ? 3 : 0) +
           wide_bias(2, n) + image(3, h, w, n, quant(is_depthwise ? "0.1" : "0.9")) +
           fmt::format("inputs 0\noutputs 3\nop 0 {} in=[{}] out=[3] padding=same activation={} depth_multiplier={}\n",
                       is_depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", range(0, 3) == 0 ? "0 1" : "0 1 2",
                       range(0, 1) == 0 ? "none" : "relu", multiplier);
  }
  // Too large for memory on the chip, so processed in stripes of rows; windows lower than their strides skip rows.
  std::string stripes() {
    type_ = "int8";
    const bool is_depthwise = range(0, 1) == 0;
    const int c = range(1, 3), h = range(165, 175), w = range(150, 160);
    const int kernel_h = range(1, 3), kernel_w = range(1, 3), down = range(1, 3), along = range(1, 3);
    const int h2 = (h + down - 1) / down, w2 = (w + along - 1) / along, last = range(1, 3);
    const auto op = [](int number, const char* name, int in, int filter, int out, int stride_h, int stride_w) {
      return fmt::format("op {} {} in=[{} {}] out=[{}] padding=same stride_h={} stride_w={}\n", number, name, in,
                         filter, out, stride_h, stride_w);
    };
    return image(0, h, w, c, quant()) + weights(1, fmt::format("16x1x1x{}", c), 16, 0) + image(2, h, w, 16, quant()) +
           weights(3, fmt::format("{}x{}x{}x16", is_depthwise ? 1 : 16, kernel_h, kernel_w), 16, is_depthwise ? 3 : 0) +
           image(4, h2, w2, 16, quant("0.2")) + weights(5, "4x1x1x16", 4, 0) +
           image(6, (h2 + last - 1) / last, (w2 + last - 1) / last, 4, quant("0.2")) + "inputs 0\noutputs 6\n" +
           op(0, "CONV_2D", 0, 1, 2, 1, 1) +
           op(1, is_depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", 2, 3, 4, down, along) +
           op(2, "CONV_2D", 4, 5, 6, last, last);
  }
  std::string wide_dense() {
    type_ = "int16";
    const int rows = range(1, 9), c = range(1, 90), n = range(1, 40);
    return fmt::format("tensor 0 \"t0\" int16 {}x{} {}\n", rows, c, quant()) +
           weights(1, fmt::format("{}x{}", n, c), 1, 0) + wide_bias(2, n) +
           fmt::format("tensor 3 \"t3\" int16 {}x{} {}\n", rows, n, quant("0.9")) +
           "inputs 0\noutputs 3\nop 0 FULLY_CONNECTED in=[0 1 2] out=[3]\n";
  }
  std::string wide_pair() {
    type_ = "int16";
    const int h = range(1, 9), w = range(1, 9), c = range(1, 40);
    constexpr const char* kPairs[] = {"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"};
    const int kind = range(0, 4);
    const bool is_repeated = range(0, 2) == 0;
    const std::string any = quant();
    return image(0, h, w, c, any) + image(1, is_repeated ? 1 : h, is_repeated ? 1 : w, c, kind < 3 ? quant() : any) +
           image(2, h, w, c,
                 kind == 2  ? quant("90.")
                 : kind < 2 ? quant()
                            : any) +
           fmt::format("inputs 0 1\noutputs 2\nop 0 {} in=[{}] out=[2]\n", kPairs[kind],
                       range(0, 1) == 0 ? "0 1" : "1 0");
  }
  std::string wide_pool() {
    type_ = "int16";
    const int h = range(1, 9), w = range(1, 9), c = range(1, 40);
    const std::string any = quant();
    return image(0, h, w, c, any) + image(1, h, w, c, any) +
           fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] padding=same filter_h={} filter_w={}\n",
                       range(0, 1) == 0 ? "AVERAGE_POOL_2D" : "MAX_POOL_2D", range(1, 5), range(1, 5));
  }
  std::string wide_function() {
    type_ = "int16";
    constexpr const char* kFunctions[] = {"TANH", "LOGISTIC", "RELU", "RELU6", "EXP", "QUANTIZE"};
    const int h = range(1, 9), w = range(1, 9), c = range(1, 40), kind = range(0, 5);
    const std::string from = fmt::format("scale=0.000{} zero=0", range(11, 99));
    const std::string to =
        kind < 2 ? "scale=0.000030517578125 zero=0" : fmt::format("scale=0.000{} zero=0", range(11, 99));
    const char* const narrow = kind == 5 && range(0, 1) == 0 ? "int8" : "int16";
    return image(0, h, w, c, from) + fmt::format("tensor 1 \"t1\" {} 1x{}x{}x{} {}\n", narrow, h, w, c, to) +
           fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1]\n", kFunctions[kind]);
  }
  std::string wide_leaky_relu() {
    type_ = "int16";
    const int h = range(1, 9), w = range(1, 9), c = range(1, 40);
    return image(0, h, w, c, quant()) + image(1, h, w, c, quant()) +
           fmt::format("inputs 0\noutputs 1\nop 0 LEAKY_RELU in=[0] out=[1] alpha={}0.{}\n",
                       range(0, 3) == 0 ? "-" : "", range(1, 9));
  }
  // A batch of several images.
  std::string wide_batch() {
    type_ = "int16";
    const int images = range(2, 4), kernel = range(1, 3), c = range(1, 20), n = range(1, 20), h = range(3, 9);
    const auto batch = [&](int id, int channels, const std::string& quant) {
      return fmt::format("tensor {0} \"t{0}\" int16 {1}x{2}x{2}x{3} {4}\n", id, images, h, channels, quant);
    };
    return batch(0, c, quant()) + weights(1, fmt::format("{}x{}x{}x{}", n, kernel, kernel, c), n, 0) + wide_bias(2, n) +
           batch(3, n, quant("0.9")) + "inputs 0\noutputs 3\nop 0 CONV_2D in=[0 1 2] out=[3] padding=same\n";
  }
  std::string wide_softmax() {
    type_ = "int16";
    const int rows = range(1, 20), c = range(0, 3) == 0 ? range(200, 900) : range(1, 40);
    const std::string shape = fmt::format("int16 {}x{}", rows, c);
    return fmt::format("tensor 0 \"t0\" {} scale=0.{}{} zero=0\n", shape, std::string(range(1, 5), '0'),
                       range(11, 99)) +
           fmt::format("tensor 1 \"t1\" {} scale=0.000030517578125 zero=0\n", shape) +
           fmt::format("inputs 0\noutputs 1\nop 0 SOFTMAX in=[0] out=[1] beta={}.5\n", range(0, 2));
  }
  std::string wide_move() {
    type_ = "int16";
    const int h = range(1, 6), w = range(1, 6), c = range(1, 30), d = range(1, 30);
    const std::string any = quant();
    switch (range(0, 2)) {
      case 0:
        return image(0, h, w, c, any) + image(1, h, w, d, any) + image(2, h, w, c + d, any) +
               "inputs 0 1\noutputs 2\nop 0 CONCATENATION in=[0 1] out=[2] axis=3\n";
      case 1:
        return image(0, h, w, c, any) + "tensor 1 \"order\" int32 4 const=[0 2 1 3]\n" + image(2, w, h, c, any) +
               "inputs 0\noutputs 2\nop 0 TRANSPOSE in=[0 1] out=[2]\n";
      default:
        return image(0, h, w, c, any) + "tensor 1 \"pads\" int32 4x2 const=[0 0 1 2 3 0 0 0]\n" +
               image(2, h + 3, w + 3, c, any) + "inputs 0\noutputs 2\nop 0 PAD in=[0 1] out=[2]\n";
    }
  }

 private:
  int range(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1)); }
  std::string quant(const char* first = "0.0") {
    const int zero = type_ == "int16" ? 0 : (type_ == "int8" ? -128 : 0) + range(0, 255);
    return fmt::format("scale={}{} zero={}", first, range(11, 99), zero);
  }
  std::string wide() { return quant("1."); }
  std::string image(int id, int h, int w, int c, const std::string& quant) const {
    return fmt::format("tensor {0} \"t{0}\" {1} 1x{2}x{3}x{4} {5}\n", id, type_, h, w, c, quant);
  }
  // For int8, a scale for each channel.
  std::string filter(int id, int n, int kernel, int c) {
    const std::string begin = fmt::format("tensor {} \"filter\" {} {}x{}x{}x{}", id, type_, n, kernel, kernel, c);
    if (type_ == "uint8")  // results do not saturate
      return begin + fmt::format(" scale=0.02 zero={} const=random:5\n", range(118, 138));
    std::string scales;
    for (int i = 0; i < n; ++i) scales += fmt::format("{}0.0{}", i == 0 ? "" : " ", range(11, 29));
    return begin + fmt::format(" scale=[{}] zero=0 axis=0 const=random:5\n", scales);
  }
  // int8 weights with `count` scales.
  std::string weights(int id, const std::string& shape, int count, int axis) {
    std::string scales;
    for (int i = 0; i < count; ++i) scales += fmt::format("{}0.0{}", i == 0 ? "" : " ", range(11, 29));
    return fmt::format("tensor {} \"weights\" int8 {} scale=[{}] zero=0 axis={} const=random:5\n", id, shape, scales,
                       axis);
  }
  std::string wide_bias(int id, int count) {
    const bool is_long = range(0, 1) == 0;
    std::string values;
    for (int i = 0; i < count; ++i)
      values += fmt::format("{}{}", i == 0 ? "" : " ", is_long ? int64_t{range(-9, 9)} << 30 : range(-99999, 99999));
    return fmt::format("tensor {} \"bias\" {} {} scale=0.001 zero=0 const=[{}]\n", id, is_long ? "int64" : "int32",
                       count, values);
  }
  std::string reduced(const char* kind, const std::string& result) {
    const int dims[] = {range(1, 3), range(1, 12), range(1, 12), range(1, 30)};
    const int first = range(1, 3), last = range(first, 3);
    const std::string given = quant();
    std::string axes, to;
    for (int i = 0; i < 4; ++i) {
      const bool is_reduced = i >= first && i <= last;
      if (is_reduced) axes += fmt::format("{}{}", axes.empty() ? "" : " ", i);
      to += fmt::format("{}{}", to.empty() ? "" : "x", is_reduced ? 1 : dims[i]);
    }
    return fmt::format("tensor 0 \"t0\" {} {}x{}x{}x{} {}\n", type_, dims[0], dims[1], dims[2], dims[3], given) +
           fmt::format("tensor 1 \"axes\" int32 {} const=[{}]\n", last - first + 1, axes) +
           fmt::format("tensor 2 \"t2\" {} {} {}\n", type_, to, result.empty() ? given : result) +
           fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2] keep_dims=true\n", kind);
  }
  std::string resized(const char* kind, int h, int w, int to_h, int to_w, const char* how) {
    const std::string any = quant();
    const int c = range(1, 30);
    return image(0, h, w, c, any) + fmt::format("tensor 1 \"n\" int32 2 const=[{} {}]\n", to_h, to_w) +
           image(2, to_h, to_w, c, any) + fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2]{}\n", kind, how);
  }

  std::mt19937 random_;
  std::string type_;
};

struct Kind {
  const char* name;
  std::string (Cases::*make)();
  uint32_t share = 1;  // one of so many seeds runs: large cases are slow
};
inline constexpr Kind kKinds[] = {{"mean", &Cases::mean},
                                  {"largest", &Cases::largest},
                                  {"bilinear", &Cases::bilinear},
                                  {"nearest", &Cases::nearest},
                                  {"transposed", &Cases::transposed},
                                  {"grouped", &Cases::grouped},
                                  {"sliced", &Cases::sliced, 3},
                                  {"prelu", &Cases::prelu},
                                  {"blocks", &Cases::blocks},
                                  {"stripes", &Cases::stripes},
                                  {"wide_conv", &Cases::wide_conv},
                                  {"wide_dense", &Cases::wide_dense},
                                  {"wide_pair", &Cases::wide_pair},
                                  {"wide_pool", &Cases::wide_pool},
                                  {"wide_mean", &Cases::wide_mean},
                                  {"wide_resize", &Cases::wide_resize},
                                  {"wide_function", &Cases::wide_function},
                                  {"wide_leaky_relu", &Cases::wide_leaky_relu},
                                  {"wide_batch", &Cases::wide_batch},
                                  {"wide_softmax", &Cases::wide_softmax},
                                  {"wide_move", &Cases::wide_move}};

// Text of a graph of the kind, drawn from a seed.
inline std::string text_of(const Kind& kind, uint32_t seed) {
  Cases cases(seed);
  return "graph \"\"\n" + (cases.*kind.make)();
}

}  // namespace skillet::ethosu_cases
