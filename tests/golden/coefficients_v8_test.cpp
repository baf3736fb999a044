// Recorded coefficient buffers of the V8 generation: the simulator decodes them to the model's weights, and our encoder
// writes the same bytes from these weights. Small captures of the repository, and all of ../shared/golden.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/int_math.h"
#include "base/testing/in_tree.h"
#include "capture/capture.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "npu/decoded_capture.h"
#include "npus/vivante/compiler/weights_v8.h"
#include "npus/vivante/sim/nn_coefficients.h"

namespace skillet::golden {
namespace {

namespace hw = ::skillet::vivante::hw;
namespace vivante = ::skillet::sim::vivante;
using npus::vivante::FilterView;
using npus::vivante::KernelSplit;
using npus::vivante::SymbolMapChoice;

constexpr const char* kChipName = "imx8mp";
const hw::ChipRow& kChip = *hw::find_chip(kChipName);
// The recorded driver reads the size of this input from the wrong dimension: the stream does not match its job.
constexpr std::string_view kBrokenCase = "edge/fc_hwc_u8";

// One recorded NN job: its buffer, and the filter in the buffer.
struct RecordedJob {
  vivante::CoefficientShape shape;
  Bytes buffer;
  Bytes weights;                      // [output channel][input channel][row][column]
  std::vector<int32_t> table_biases;  // as in the buffer
};

int64_t weights_per_kernel(const vivante::CoefficientShape& shape) {
  return shape.taps() * (shape.depthwise ? 1 : shape.planes);
}

void place_kernel(const vivante::Kernel& kernel, RecordedJob& job) {
  const auto n = static_cast<size_t>(weights_per_kernel(job.shape)), taps = static_cast<size_t>(job.shape.taps());
  uint8_t* const to = job.weights.data() + kernel.output_offset * n;
  for (size_t i = 0; i < kernel.weights.size(); ++i) {
    const size_t plane = job.shape.depthwise ? 0 : kernel.planes[i / taps];
    to[plane * taps + i % taps] = static_cast<uint8_t>(kernel.weights[i] + job.shape.zero_point);
  }
}

// Returns the recorded bytes at a device address.
Result<Bytes> read(const capture::Submission& submission, uint64_t address, uint64_t size_bytes) {
  const auto place = npu::find_place(submission, address);
  if (!place || size_bytes > place->room_bytes) return error(ErrorCode::malformed, "no buffer at {:#x}", address);
  Bytes bytes(place->buffer->bytes.begin(), place->buffer->bytes.end());
  bytes.resize(place->offset + size_bytes);
  return Bytes(bytes.begin() + static_cast<ptrdiff_t>(place->offset), bytes.end());
}

Result<RecordedJob> read_job(const capture::Submission& submission, uint64_t address) {
  SK_TRY_ASSIGN(const Bytes descriptor, read(submission, address, hw::kNnInstructionWords * 4));
  std::vector<uint32_t> words(hw::kNnInstructionWords);
  std::memcpy(words.data(), descriptor.data(), descriptor.size());
  const hw::NnInstruction d = hw::unpack_nn_instruction(kChip, words).fields;
  RecordedJob job{.shape = vivante::coefficient_shape(d)};
  job.shape.plane_bytes = 1;  // so that offsets count channels
  const vivante::CoefficientFormat& format = vivante::kCoefficientFormatV8;
  const auto header_bytes = static_cast<uint64_t>(format.header_bytes(kChip));
  SK_TRY_ASSIGN(const Bytes header, read(submission, d.kernel_address.offset, header_bytes));
  SK_TRY_ASSIGN(const int64_t size, format.buffer_bytes(header, kChip, job.shape));
  SK_TRY_ASSIGN(job.buffer, read(submission, d.kernel_address.offset, static_cast<uint64_t>(size)));
  SK_TRY_ASSIGN(const vivante::Coefficients decoded, format.decode(job.buffer, kChip, job.shape));
  job.weights.assign(static_cast<size_t>(job.shape.output_planes * weights_per_kernel(job.shape)),
                     job.shape.zero_point);
  for (const vivante::Kernel& kernel : decoded.kernels) place_kernel(kernel, job);
  const std::span<const uint8_t> table = std::span(job.buffer).last(4 * static_cast<size_t>(job.shape.output_planes));
  for (size_t at = 0; at < table.size(); at += 4)
    job.table_biases.push_back(static_cast<int32_t>(load_le<uint32_t>(table.data() + at)));
  return job;
}

Result<std::vector<RecordedJob>> read_jobs(const std::string& folder) {
  SK_TRY_ASSIGN(const capture::Capture capture, capture::read(folder));
  std::vector<RecordedJob> jobs;
  for (const capture::Submission& submission : capture.submissions) {
    SK_TRY_ASSIGN(const std::span<const uint32_t> stream, capture::words_of(submission));
    for (size_t i = 0; i + 1 < stream.size(); i += 2) {
      if (stream[i] != hw::load_state_word(hw::State::nn_instruction_address)) continue;
      SK_TRY_ASSIGN(RecordedJob job, read_job(submission, stream[i + 1] & ~uint32_t{63}));
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

// ---- the model's weights in the form of a job ----

struct ModelFilter {
  const ir::Tensor* filter;
  bool depthwise, fully_connected, s2d;
  uint8_t flip, zero_point;

  int32_t rows() const { return static_cast<int32_t>(filter->shape.dims[1]); }
  int32_t columns() const { return static_cast<int32_t>(filter->shape.dims[2]); }
  int32_t last() const { return static_cast<int32_t>(filter->shape.dims.back()); }
  // Outside the filter: the zero point, as space-to-depth fills.
  uint8_t tap(int32_t oc, int32_t c, int32_t row, int32_t column) const {
    if (row >= rows() || column >= columns()) return zero_point;
    const int64_t position = int64_t{row} * columns() + column;
    const int64_t at = depthwise ? position * last() + oc : (int64_t{oc} * rows() * columns() + position) * last() + c;
    return filter->data[static_cast<size_t>(at)] ^ flip;
  }
};

Bytes expected_weights(const ModelFilter& m, int32_t output_channels) {
  Bytes all;
  if (m.fully_connected) {
    for (const uint8_t byte : m.filter->data) all.push_back(byte ^ m.flip);
    return all;
  }
  const int32_t step = m.s2d ? 2 : 1;
  for (int32_t oc = 0; oc < output_channels; ++oc)
    for (int32_t c = 0; c < (m.depthwise ? 1 : m.last()); ++c)
      for (int32_t parity = 0; parity < step * step; ++parity)
        for (int32_t row = 0; row < m.rows(); row += step)
          for (int32_t column = 0; column < m.columns(); column += step)
            all.push_back(m.tap(oc, c, row + parity / 2, column + parity % 2));
  return all;
}

// Returns the ops that become NN jobs, in order.
std::vector<const ir::Op*> nn_ops(const ir::Graph& graph) {
  std::vector<const ir::Op*> ops;
  for (const ir::Op& op : graph.ops) {
    const bool filter = op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d ||
                        op.kind == ir::OpKind::fully_connected;
    if (filter && graph.tensor(op.inputs[1]).quant.per_channel()) continue;
    if (filter || op.kind == ir::OpKind::add || op.kind == ir::OpKind::sub) ops.push_back(&op);
  }
  return ops;
}

bool is_sum(const ir::Op& op) { return op.kind == ir::OpKind::add || op.kind == ir::OpKind::sub; }

// Excludes additions, 1x1x1 filters, which become 2x2, and strides that the recorded driver compiles wrongly.
bool has_model_weights(const ir::Graph& graph, const ir::Op& op, const RecordedJob& job) {
  if (is_sum(op)) return false;
  if (const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs); conv != nullptr && conv->stride_h > 2) return false;
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  return filter.data.size() > static_cast<size_t>(job.shape.output_planes) || weights_per_kernel(job.shape) == 1;
}

ModelFilter model_filter(const ir::Graph& graph, const ir::Op& op, const RecordedJob& job) {
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  const uint8_t flip = filter.dtype == ir::DType::int8 ? 0x80 : 0;
  ModelFilter m{.filter = &filter,
                .depthwise = op.kind == ir::OpKind::depthwise_conv_2d,
                .fully_connected = op.kind == ir::OpKind::fully_connected,
                .s2d = false,
                .flip = flip,
                .zero_point = static_cast<uint8_t>(filter.quant.zero_points[0] + flip)};
  m.s2d = !m.depthwise && !m.fully_connected && job.shape.planes == 4 * int64_t{m.last()};
  return m;
}

// ---- all cases of a folder ----

struct Counts {
  int jobs = 0, with_model = 0, byte_identical = 0;
  npus::vivante::CoefficientSizes sizes;
};

void check_job(const std::string& name, const ir::Graph& graph, const ir::Op& op, const RecordedJob& job,
               Counts& counts) {
  ++counts.jobs;
  if (has_model_weights(graph, op, job)) {
    const Bytes expected =
        expected_weights(model_filter(graph, op, job), static_cast<int32_t>(job.shape.output_planes));
    EXPECT_TRUE(job.weights == expected) << name << ": weights";
    ++counts.with_model;
  }
  // The driver makes the weights of additions itself, unsigned in int8 models too.
  const bool is_signed = graph.tensor(op.inputs[1]).dtype == ir::DType::int8 && !is_sum(op);
  const FilterView view{.output_channels = static_cast<int32_t>(job.shape.output_planes),
                        .weights_per_kernel = static_cast<int32_t>(weights_per_kernel(job.shape)),
                        .depthwise = job.shape.depthwise,
                        .zero_point = job.shape.zero_point,
                        .model_xor = static_cast<uint8_t>(is_signed ? 0x80 : 0),
                        .weights = job.weights,
                        .biases = job.table_biases};
  const int32_t cores = std::min(view.output_channels, kChip.nn_cores);
  const int32_t superblocks =
      ceil_div(ceil_div(view.output_channels, cores), static_cast<int32_t>(job.shape.kernels_per_core));
  const KernelSplit split = npus::vivante::split_kernels(view.output_channels, kChip.nn_cores, superblocks);
  const Bytes ours = write_streams_v8(view, split, SymbolMapChoice::recorded).bytes;
  EXPECT_TRUE(ours == job.buffer) << name << ": bytes of the buffer";
  counts.byte_identical += ours == job.buffer;
  const npus::vivante::CoefficientSizes sizes = sizes_v8(view, split);
  EXPECT_LE(sizes.smallest, sizes.recorded) << name;
  EXPECT_LE(sizes.entropy, sizes.format) << name;
  counts.sizes.raw += sizes.raw;
  counts.sizes.recorded += sizes.recorded;
  counts.sizes.smallest += sizes.smallest;
  counts.sizes.format += sizes.format;
  counts.sizes.entropy += sizes.entropy;
}

void check_case(const std::string& dir, const std::string& name, Counts& counts) {
  const auto jobs = read_jobs(dir + "/" + kChipName + "/" + name);
  ASSERT_TRUE(jobs.ok()) << name << ": " << jobs.error().message;
  const auto graph = tflite::import_file(dir + "/models/" + name + ".tflite");
  ASSERT_TRUE(graph.ok()) << name << ": " << graph.error().message;
  const std::vector<const ir::Op*> ops = nn_ops(*graph);
  ASSERT_EQ(ops.size(), jobs->size()) << name;
  for (size_t i = 0; i < jobs->size(); ++i)
    check_job(fmt::format("{} job {}", name, i), *graph, *ops[i], (*jobs)[i], counts);
}

Counts check_folder(const std::string& dir) {
  Counts counts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir + "/" + kChipName)) {
    if (entry.path().filename() != "capture.json") continue;
    const auto folder = entry.path().parent_path();
    const std::string name = folder.parent_path().filename().string() + "/" + folder.filename().string();
    if (name != kBrokenCase) check_case(dir, name, counts);
  }
  fmt::print(
      "{} jobs, {} with weights of the model, {} byte-identical; bytes raw {}, recorded {}, smallest {}, "
      "format {}, entropy {}\n",
      counts.jobs, counts.with_model, counts.byte_identical, counts.sizes.raw, counts.sizes.recorded,
      counts.sizes.smallest, counts.sizes.format, counts.sizes.entropy);
  return counts;
}

TEST(GoldenCoefficientsV8, SmallCaptures) {
  const Counts counts = check_folder(skillet::in_tree("tests/captures/sim_golden"));
  EXPECT_GE(counts.with_model, 9);
  EXPECT_EQ(counts.byte_identical, counts.jobs);
}

TEST(GoldenCoefficientsV8, AllCaptures) {
  const auto dir = find_golden_dir();
  if (!dir) GTEST_SKIP() << "no ../shared/golden: only the small captures were read";
  const Counts counts = check_folder(*dir);
  EXPECT_EQ(counts.byte_identical, counts.jobs);
  EXPECT_GT(counts.with_model, 500);
}

}  // namespace
}  // namespace skillet::golden
