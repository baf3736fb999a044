// Operations that compute pixels from others (MIRROR_PAD, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, AVERAGE_POOL_2D
// with padding, MEAN), with random shapes and quantizations, on simulated chips without such an operation, against the
// CPU kernel.
#include <gtest/gtest.h>

#include <random>

#include "base/bytes.h"
#include "runtime/testing/run_both.h"

namespace skillet {
namespace {

class Cases {
 public:
  explicit Cases(uint32_t seed) : random_(seed) {}

  std::string make() {
    const bool is_signed = range(0, 1) == 0;
    type_ = is_signed ? "int8" : "uint8";
    const int lowest = is_signed ? -128 : 0;
    quant_ = fmt::format("scale=0.0{} zero={}", range(11, 99), lowest + range(0, 255));
    other_ = fmt::format("scale=0.0{} zero={}", range(11, 99), lowest + range(0, 255));
    const int h = range(2, 8), w = range(2, 8), c = std::array{1, 3, 8, 16, 20}[random_() % 5];
    switch (range(0, 4)) {
      case 0: return mirrored(h, w, c);
      case 1: return resized("RESIZE_BILINEAR", h, w, c, 2);
      case 2: return resized("RESIZE_NEAREST_NEIGHBOR", h, w, c, range(2, 4));
      case 3:
        return image(0, h, w, c, quant_) + image(1, h, w, c, quant_) + "inputs 0\noutputs 1\n" +
               fmt::format("op 0 AVERAGE_POOL_2D in=[0] out=[1] filter_h=3 filter_w=3 padding=same\n");
      default:
        return image(0, h, w, c, quant_) + "tensor 1 \"axes\" int32 2 const=[1 2]\n" + image(2, 1, 1, c, other_) +
               "inputs 0\noutputs 2\nop 0 MEAN in=[0 1] out=[2] keep_dims=true\n";
    }
  }

 private:
  int range(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1)); }
  std::string image(int id, int h, int w, int c, const std::string& quant) const {
    return fmt::format("tensor {0} \"t{0}\" {1} 1x{2}x{3}x{4} {5}\n", id, type_, h, w, c, quant);
  }
  std::string mirrored(int h, int w, int c) {
    const int n[] = {range(0, h - 1), range(0, h - 1), range(0, w - 1), range(0, w - 1)};
    return image(0, h, w, c, quant_) +
           fmt::format("tensor 1 \"n\" int32 4x2 const=[0 0 {} {} {} {} 0 0]\n", n[0], n[1], n[2], n[3]) +
           image(2, h + n[0] + n[1], w + n[2] + n[3], c, quant_) +
           fmt::format("inputs 0\noutputs 2\nop 0 MIRROR_PAD in=[0 1] out=[2] symmetric={}\n", range(0, 1) == 0);
  }
  std::string resized(const char* kind, int h, int w, int c, int times) {
    const char* const how = std::array{"", " half_pixel_centers=true"}[random_() % 2];
    return image(0, h, w, c, quant_) + fmt::format("tensor 1 \"n\" int32 2 const=[{} {}]\n", h * times, w * times) +
           image(2, h * times, w * times, c, quant_) +
           fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2]{}\n", kind, how);
  }

  std::mt19937 random_;
  std::string type_, quant_, other_;
};

int difference(std::span<const uint8_t> got, std::span<const uint8_t> wanted, bool is_signed) {
  const auto value = [&](uint8_t byte) { return is_signed ? int{static_cast<int8_t>(byte)} : int{byte}; };
  int most = 0;
  for (size_t i = 0; i < wanted.size(); ++i) most = std::max(most, std::abs(value(got[i]) - value(wanted[i])));
  return most;
}

// Returns the largest difference from the CPU kernel; -1: the chip does not take the whole graph.
int judged(const ir::Graph& graph, const char* device, uint32_t seed) {
  const auto both = runtime::run_both(graph, device, {.cores = 1}, seed);
  if (!both) return -1;
  return difference(both->got, both->wanted, graph.tensor(graph.outputs[0]).dtype == ir::DType::int8);
}

class Pixels : public testing::TestWithParam<const char*> {};

TEST_P(Pixels, OfOthers) {
  int taken = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const std::string text = "graph \"\"\n" + Cases(seed).make();
    SCOPED_TRACE(text);
    const auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const int most = judged(*graph, GetParam(), seed);
    EXPECT_LE(most, text.find("PAD") != std::string::npos || text.find("NEAREST") != std::string::npos ? 0 : 1);
    taken += most >= 0;
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(taken, 33);
}
INSTANTIATE_TEST_SUITE_P(Chips, Pixels, testing::Values("sim:a311d", "sim:imx8mp"));

}  // namespace
}  // namespace skillet
