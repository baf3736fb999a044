// `skillet decode --weights` of recorded jobs gives the model's weights: of every chip, the small cases of the
// repository, and all of ../shared/golden. Which operation a job belongs to is what `--model` tells.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/testing/in_tree.h"
#include "capture/capture.h"
#include "captures.h"
#include "driver/driver.h"
#include "frontend/tflite/import.h"
#include "golden_case.h"
#include "tools/decode_weights.h"
#include "tools/model_ops.h"

namespace skillet::golden {
namespace {

// Where the recorded driver is known to send other weights than the model's, or not as its job says.
struct Exception {
  std::string_view chip;
  bool (*is)(const sim::Weights& job);
  std::string_view why;
};
constexpr Exception kExceptions[] = {
    {"a311d", [](const sim::Weights& w) { return w.height == 5 && w.width == 5 && w.planes == 1; },
     "5x5 filters of one channel go row after row, which no field tells"},
    {"a311d", [](const sim::Weights& w) { return w.width == 7; }, "columns from the fourth on go as one group"},
    {"rk3588", [](const sim::Weights& w) { return w.height != w.width; }, "height and width of filters are exchanged"},
    {"rk3588", [](const sim::Weights& w) { return w.depthwise && w.kernels % 64 > 32; },
     "the last group of depthwise channels is not as wide as is programmed"},
    {"rk3588", [](const sim::Weights& w) { return w.kernels % 2 != 0 && w.planes > 32 && w.height * w.width > 1; },
     "the kernel that fills up an odd number is too wide"},
};
constexpr int kMostExceptions = 20;

bool is_exception(std::string_view chip, const sim::Weights& job) {
  return std::ranges::any_of(kExceptions, [&](const Exception& one) { return one.chip == chip && one.is(job); });
}

// The model's filter as the kernels of a job have it.
struct Filter {
  const ir::Tensor* tensor;
  ir::OpKind kind;
  uint8_t flip, outside;

  int64_t dim(size_t i) const { return tensor->shape.dims[i]; }
  bool is_depthwise() const { return kind == ir::OpKind::depthwise_conv_2d; }
  int64_t kernels() const { return is_depthwise() ? dim(3) : dim(0); }
  uint8_t at(int64_t index) const { return tensor->data[static_cast<size_t>(index)] ^ flip; }

  // Planes of an image that was taken apart into four are 4 * channel + 2 * row parity + column parity.
  uint8_t tap(const sim::Weights& job, int64_t kernel, int64_t plane, int64_t row, int64_t column) const {
    if (kind == ir::OpKind::fully_connected)
      return at(kernel * dim(1) + (plane * job.height + row) * job.width + column);
    const int64_t channels = dim(3);
    const bool apart = !job.depthwise && job.planes == 4 * channels;
    const int64_t channel = job.depthwise ? kernel : apart ? plane / 4 : plane;
    if (apart) row = 2 * row + plane % 4 / 2;
    if (apart) column = 2 * column + plane % 2;
    if (row >= dim(1) || column >= dim(2) || (is_depthwise() && channel != kernel)) return outside;
    if (is_depthwise()) return at((row * dim(2) + column) * dim(3) + channel);
    return at(((kernel * dim(1) + row) * dim(2) + column) * dim(3) + channel);
  }
};

// Whether the job has the kernels of the model from `first` on.
bool same(const sim::Weights& job, const Filter& filter, int64_t first) {
  size_t at = 0;
  for (int64_t kernel = first; kernel < first + job.kernels; ++kernel) {
    for (int64_t plane = 0; plane < job.planes; ++plane) {
      for (int64_t row = 0; row < job.height; ++row) {
        for (int64_t column = 0; column < job.width; ++column) {
          if (job.bytes[at++] != filter.tap(job, kernel, plane, row, column)) return false;
        }
      }
    }
  }
  return true;
}

// A job may have some of the kernels only.
bool has_model_weights(const sim::Weights& job, const Filter& filter) {
  for (int64_t first = 0; first + job.kernels <= filter.kernels(); ++first) {
    if (same(job, filter, first)) return true;
  }
  return false;
}

// The recorded driver sends the bytes of int8 filters raised by 128 on the i.MX 8M Plus only, elsewhere as they are.
Filter filter_of(const ir::Graph& graph, const ir::Op& op, std::string_view chip, const sim::Weights& job) {
  const ir::Tensor& tensor = graph.tensor(op.inputs[1]);
  const bool is_signed = tensor.dtype == ir::DType::int8, raised = is_signed && chip == "imx8mp";
  const auto outside = static_cast<uint8_t>(is_signed && !raised ? 0 : job.zero_point);
  return {&tensor, op.kind, static_cast<uint8_t>(raised ? 0x80 : 0), outside};
}

struct Counts {
  int jobs = 0, with_model = 0, unknown = 0, excepted = 0;
};

void check_job(const std::string& where, const std::string& chip, const ir::Graph& graph, const std::string& op_text,
               const sim::Weights& job, Counts& counts) {
  ++counts.jobs;
  size_t index = 0;
  const auto [end, failure] = std::from_chars(op_text.data(), op_text.data() + op_text.size(), index);
  if (failure != std::errc()) {
    ++counts.unknown;
    return;
  }
  const ir::Op& op = graph.ops.at(index);
  const bool has_filter = op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d ||
                          op.kind == ir::OpKind::fully_connected;
  if (!has_filter) return;
  const bool same = job.problem.empty() && has_model_weights(job, filter_of(graph, op, chip, job));
  ++(same ? counts.with_model : counts.excepted);
  EXPECT_TRUE(same || is_exception(chip, job))
      << where << ", op " << op_text << ": " << job.kernels << "x" << job.planes << "x" << job.height << "x"
      << job.width << " " << job.problem;
}

void check_case(const std::string& dir, const std::string& chip_name, const std::string& name, Counts& counts) {
  const auto chip = driver::find_chip(chip_name);
  ASSERT_TRUE(chip.ok());
  const driver::Driver* const driver = *driver::driver_of(*chip);
  const auto capture = capture::read(fmt::format("{}/{}/{}", dir, chip_name, name));
  ASSERT_TRUE(capture.ok()) << name << ": " << capture.error().message;
  const std::string model = fmt::format("{}/models/{}.tflite", dir, name);
  const auto graph = tflite::import_file(model);
  ASSERT_TRUE(graph.ok()) << name << ": " << graph.error().message;
  auto ops = tools::ModelOps::load(model, *chip);
  tools::RecordedMemory memory;
  for (size_t s = 0; s < capture->submissions.size(); ++s) {
    const capture::Submission& one = capture->submissions[s];
    ASSERT_TRUE(memory.add(one).ok()) << name;
    const auto decoded = driver->decode(*chip, one);
    ASSERT_TRUE(decoded.ok()) << name << ": " << decoded.error().message;
    const auto weights = tools::weights_of(chip_name, one, memory);
    ASSERT_TRUE(weights.ok()) << name << ": " << weights.error().message;
    ASSERT_EQ(weights->size(), decoded->operations.size()) << name;
    const std::vector<std::string> texts = ops.ok() ? ops->of(*decoded) : std::vector<std::string>(weights->size());
    for (size_t i = 0; i < weights->size(); ++i) {
      if ((*weights)[i])
        check_job(fmt::format("{} {} submission {} job {}", chip_name, name, s, i), chip_name, *graph, texts[i],
                  *(*weights)[i], counts);
    }
  }
}

Counts check_folder(const std::string& dir, const std::string& chip) {
  Counts counts;
  const auto cases = list_captures(dir, chip);
  if (!cases.ok()) return counts;
  for (const std::string& name : *cases) check_case(dir, chip, name, counts);
  fmt::print("{}: {} jobs with weights, {} of them the model's, {} known not to be, {} of no known operation\n", chip,
             counts.jobs, counts.with_model, counts.excepted, counts.unknown);
  return counts;
}

constexpr std::array kChips = {"a311d", "imx8mp", "rk3588"};

TEST(GoldenWeights, OfSmallCases) {
  const std::string tests = skillet::in_tree("tests/");
  EXPECT_GE(check_folder(tests + "golden/small", "a311d").with_model, 3);
  EXPECT_GE(check_folder(tests + "captures/sim_golden", "imx8mp").with_model, 3);
  EXPECT_GE(check_folder(tests + "rockchip/small", "rk3588").with_model, 3);
}

TEST(GoldenWeights, OfAllCases) {
  const auto dir = find_golden_dir();
  if (!dir) GTEST_SKIP() << "no ../shared/golden: only the small cases were read";
  for (const char* const chip : kChips) {
    const Counts counts = check_folder(*dir, chip);
    EXPECT_GT(counts.with_model, counts.jobs / 2) << chip;
    EXPECT_LT(counts.unknown, counts.jobs / 10) << chip;
    EXPECT_LE(counts.excepted, kMostExceptions) << chip;
  }
}

}  // namespace
}  // namespace skillet::golden
