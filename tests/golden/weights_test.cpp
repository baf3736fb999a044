// `skillet decode --weights` of recorded jobs gives the model's weights: for every chip, the small cases of the
// repository, and all of ../shared/golden. `--model` names the operation that a job belongs to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/testing/in_tree.h"
#include "capture/capture.h"
#include "captures.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "npu/driver.h"
#include "tools/jobs/decode_weights.h"
#include "tools/model/model_ops.h"

namespace skillet::golden {
namespace {

// Recorded jobs without weights of the model at the place that their fields give.
struct Unreadable {
  std::string_view chip, name;  // no chip: all
  std::string_view why;
};
constexpr Unreadable kUnreadable[] = {
    {"", "edge/fc_hwc_u8", "the job multiplies with a part of the filter only"},
    {"", "edge/stride_3_u8", "taken apart as if the stride were 2, and wrong"},
    {"", "edge/tall_pw_u8", "its planes are larger than its fields can say"},
    {"a311d", "edge/rect_filter_3x5_u8", "height and width of the filter are exchanged, not in its format"},
    {"s905d3", "edge/rect_filter_3x5_u8", "the same"},
    {"rk3588", "edge/scale_2m100_u8", "its shift has more bits than are known to work"},
    {"rk3588", "edge/scale_2m112_u8", "the same"},
    {"rk3588", "edge/scale_2m113_u8", "the same"},
};

bool is_unreadable(const std::string& chip, const std::string& name) {
  return std::ranges::any_of(
      kUnreadable, [&](const Unreadable& one) { return (one.chip.empty() || one.chip == chip) && one.name == name; });
}

// The model's filter in the form of a job's kernels.
struct Filter {
  const ir::Tensor* tensor;
  ir::OpKind kind;
  uint8_t flip, outside;

  int64_t dim(size_t i) const { return tensor->shape.dims[i]; }
  bool is_depthwise() const { return kind == ir::OpKind::depthwise_conv_2d; }
  int64_t kernels() const { return is_depthwise() ? dim(3) : dim(0); }
  uint8_t at(int64_t index) const { return tensor->data[static_cast<size_t>(index)] ^ flip; }

  // An image rearranged for a stride of s has planes s * s * channel + s * row remainder + column remainder.
  uint8_t tap(const sim::Weights& job, int64_t kernel, int64_t plane, int64_t row, int64_t column) const {
    if (kind == ir::OpKind::fully_connected && job.planes * job.height * job.width != dim(1)) return outside;
    if (kind == ir::OpKind::fully_connected)
      return at(kernel * dim(1) + (plane * job.height + row) * job.width + column);
    const int64_t channels = dim(3);
    int64_t apart = 1;
    while (!job.depthwise && apart * apart * channels < job.planes) ++apart;
    const int64_t channel = job.depthwise ? kernel : plane / (apart * apart);
    row = apart * row + plane % (apart * apart) / apart;
    column = apart * column + plane % apart;
    // Some recorded jobs have the filter's height and width swapped; the bytes are right.
    if (job.height != job.width && job.height == dim(2) && job.width == dim(1)) {
      const int64_t tap = row * job.width + column;
      row = tap / dim(2);
      column = tap % dim(2);
    }
    if (row >= dim(1) || column >= dim(2) || (is_depthwise() && channel != kernel)) return outside;
    if (is_depthwise()) return at((row * dim(2) + column) * dim(3) + channel);
    return at(((kernel * dim(1) + row) * dim(2) + column) * dim(3) + channel);
  }
};

// Returns whether the job has the model's kernels from `first` on.
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

// A job may have only some of the kernels.
bool has_model_weights(const sim::Weights& job, const Filter& filter) {
  for (int64_t first = 0; first + job.kernels <= filter.kernels(); ++first) {
    if (same(job, filter, first)) return true;
  }
  return false;
}

// The recorded driver sends int8 filter bytes raised by 128 on the i.MX 8M Plus, and unchanged elsewhere.
Filter filter_of(const ir::Graph& graph, const ir::Op& op, std::string_view chip, const sim::Weights& job) {
  const ir::Tensor& tensor = graph.tensor(op.inputs[1]);
  const bool is_signed = tensor.dtype == ir::DType::int8, raised = is_signed && chip == "imx8mp";
  const auto outside = static_cast<uint8_t>(is_signed && !raised ? 0 : job.zero_point);
  return {&tensor, op.kind, static_cast<uint8_t>(raised ? 0x80 : 0), outside};
}

struct Counts {
  int jobs = 0, with_model = 0, additions = 0, several_orders = 0;
};

bool has_filter(const ir::Op& op) {
  return op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d ||
         op.kind == ir::OpKind::fully_connected;
}

// The recorded driver makes the filters of additions itself.
bool adds(const ir::Graph& graph) {
  return std::ranges::any_of(graph.ops,
                             [](const ir::Op& op) { return op.kind == ir::OpKind::add || op.kind == ir::OpKind::sub; });
}

// `op_text`: the operation as `--model` prints it; empty: any operation of the model.
bool is_of_model(const sim::Weights& job, const ir::Graph& graph, const std::string& chip, const std::string& op_text) {
  size_t index = 0;
  const bool is_told = std::from_chars(op_text.data(), op_text.data() + op_text.size(), index).ec == std::errc();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    if ((is_told && i != index) || !has_filter(op) || graph.tensor(op.inputs[1]).data.empty()) continue;
    if (has_model_weights(job, filter_of(graph, op, chip, job))) return true;
  }
  return false;
}

void check_job(const std::string& where, const std::string& chip, const ir::Graph& graph, const std::string& op_text,
               const sim::Weights& job, Counts& counts) {
  ++counts.jobs;
  if (!job.others.empty()) ++counts.several_orders;
  if (job.problem.empty() && is_of_model(job, graph, chip, op_text)) {
    ++counts.with_model;
    return;
  }
  EXPECT_TRUE(adds(graph)) << where << ", op " << op_text << ": " << job.kernels << "x" << job.planes << "x"
                           << job.height << "x" << job.width << " " << job.order << " " << job.problem;
  ++counts.additions;
}

void check_case(const std::string& dir, const std::string& chip_name, const std::string& name, Counts& counts) {
  const auto chip = npu::find_chip(chip_name);
  ASSERT_TRUE(chip.ok());
  const npu::Driver* const driver = *npu::driver_of(*chip);
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
  for (const std::string& name : *cases) {
    if (!is_unreadable(chip, name)) check_case(dir, chip, name, counts);
  }
  fmt::print("{}: {} jobs with weights, {} of them the model's, {} in models with additions; {} tell no order\n", chip,
             counts.jobs, counts.with_model, counts.additions, counts.several_orders);
  return counts;
}

constexpr std::array kChips = {"a311d", "s905d3", "imx8mp", "rk3588"};

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
    EXPECT_LT(counts.several_orders, counts.jobs / 4) << chip;
  }
}

}  // namespace
}  // namespace skillet::golden
