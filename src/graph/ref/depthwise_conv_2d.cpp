// DEPTHWISE_CONV_2D, 8-bit: rows of the image are widened on demand, with their padding, so that each tap of a window
// has the same offset for all pixels of a row. A depth multiplier is applied when a row is widened: each input channel
// is repeated, so that input and output channels match one to one.
#include <algorithm>

#include "graph/ref/hybrid.h"
#include "graph/ref/weighted.h"
#include "graph/ref/window.h"
#include "simd/depthwise.h"

namespace skillet::ref {
namespace {

struct DepthwisePlan {
  Window window;
  int32_t input_zero_point = 0;
  size_t channels = 0, multiplier = 1;  // output channels; output channels per input channel
  std::vector<int32_t> kernel_cols;     // columns that are within the image for some pixel
  int32_t first_col = 0;                // first column of a widened row; may be before the image
  size_t row_elems = 0;
  depthwise::Filter filter;
  // Scratch, reused by every run.
  size_t slots = 0;                  // input row y is in slot y % slots
  std::vector<int16_t> rows;         // [slots + 1][row_elems]; the last slot is for rows outside of the image
  std::vector<int32_t> row_in_slot;  // [slots]
  std::vector<const int16_t*> taps;  // for a row of output pixels

  const int16_t* row_outside() const { return rows.data() + slots * row_elems; }
};

template <typename T>
void widen_row(DepthwisePlan& plan, const T* image, int32_t y, int16_t* row) {
  const auto first = static_cast<size_t>(std::max(plan.first_col, 0));
  const auto before = static_cast<size_t>(std::max(-plan.first_col, 0));
  const size_t row_px = plan.row_elems / plan.channels;
  const size_t count = std::min(static_cast<size_t>(plan.window.input_w) - first, row_px - before);
  const size_t channels_in = plan.channels / plan.multiplier;
  const T* from = image + plan.window.input_index(y, static_cast<int32_t>(first)) * channels_in;
  int16_t* to = row + before * plan.channels;
  if (plan.multiplier == 1) return gemm::widen(from, count * channels_in, plan.input_zero_point, to);
  for (size_t i = 0; i < count * channels_in; ++i) {
    const auto value = static_cast<int16_t>(from[i] - plan.input_zero_point);
    to = std::fill_n(to, plan.multiplier, value);
  }
}

template <typename T>
void find_taps(DepthwisePlan& plan, const T* image, size_t out_y) {
  const Window& w = plan.window;
  if (plan.kernel_cols.empty()) return;
  auto tap = plan.taps.begin();
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    const int32_t y = w.input_row(out_y, ky);
    if (!w.has_row(y)) {
      tap = std::fill_n(tap, plan.kernel_cols.size(), plan.row_outside());
      continue;
    }
    const size_t slot = static_cast<size_t>(y) % plan.slots;
    int16_t* row = plan.rows.data() + slot * plan.row_elems;
    if (plan.row_in_slot[slot] != y) widen_row(plan, image, y, row);
    plan.row_in_slot[slot] = y;
    for (const int32_t kx : plan.kernel_cols) {
      *tap++ = row + static_cast<size_t>(w.input_col(0, kx) - plan.first_col) * plan.channels;
    }
  }
}

template <typename T>
void run_image(DepthwisePlan& plan, const T* image, T* out) {
  std::fill(plan.row_in_slot.begin(), plan.row_in_slot.end(), -1);
  const auto output_w = static_cast<size_t>(plan.window.output_w);
  for (size_t y = 0; y < static_cast<size_t>(plan.window.output_h); ++y) {
    find_taps(plan, image, y);
    depthwise::run(plan.filter, plan.taps.data(), output_w, out + y * output_w * plan.channels);
  }
}

// Finds the columns of the kernel that overlap the image, with any dilation, and the size of a widened row.
void place_columns(DepthwisePlan& plan) {
  const Window& w = plan.window;
  const int32_t across = (w.output_w - 1) * w.stride_w;
  for (int32_t kx = 0; kx < w.kernel_w; ++kx) {
    const int32_t first = w.input_col(0, kx);
    if (first < w.input_w && first + across >= 0) plan.kernel_cols.push_back(kx);
  }
  if (plan.kernel_cols.empty()) return;
  plan.first_col = w.input_col(0, plan.kernel_cols.front());
  const int32_t row_px = w.input_col(0, plan.kernel_cols.back()) + across + 1 - plan.first_col;
  plan.row_elems = static_cast<size_t>(row_px) * plan.channels;
  plan.slots = static_cast<size_t>(std::min((w.kernel_h - 1) * w.dilation_h + 1, w.input_h));
}

void take_filter(DepthwisePlan& plan, const ir::Tensor& filter, const OutputStage& stage) {
  const Window& w = plan.window;
  const std::vector<int16_t> all = widen_rows(filter, 1, elem_count(filter), elem_count(filter));
  std::vector<int16_t> used;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (const int32_t kx : plan.kernel_cols) {
      const auto tap = static_cast<ptrdiff_t>(ky) * w.kernel_w + kx, channels = static_cast<ptrdiff_t>(plan.channels);
      used.insert(used.end(), all.begin() + tap * channels, all.begin() + (tap + 1) * channels);
    }
  }
  const size_t taps = used.size() / plan.channels;
  plan.filter =
      depthwise::pack(used.data(), taps, plan.channels, static_cast<size_t>(w.stride_w) * plan.channels, stage.from(0));
  plan.rows.resize((plan.slots + 1) * plan.row_elems + depthwise::kReadBeyond);
  plan.row_in_slot.resize(plan.slots);
  plan.taps.resize(taps + 1, plan.row_outside());
}

}  // namespace

Result<KernelPtr> prepare_depthwise_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  if (is_hybrid(c)) return prepare_hybrid_depthwise_conv_2d(c);
  if (input.dtype == ir::DType::float32) return prepare_float_conv_2d(c);
  if (input.dtype == ir::DType::int16) return prepare_int16_depthwise_conv_2d(c);
  DepthwisePlan plan;
  SK_TRY_ASSIGN(plan.window, conv_window(c, attrs, input.shape, filter.shape, c.output().shape));
  plan.input_zero_point = input.quant.zero_point();
  plan.channels = dim(filter, 3);
  plan.multiplier = static_cast<size_t>(attrs.depth_multiplier);
  SK_TRY_ASSIGN(const OutputStage stage,
                output_stage({.context = c, .channels = plan.channels, .activation = attrs.activation}));
  place_columns(plan);
  take_filter(plan, filter, stage);
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel([plan = std::move(plan), batches = dim(input, 0), in = c.input_index(0),
                        out = c.output_index()](Tensors tensors) mutable {
      const size_t image_elems = plan.window.input_px() * plan.channels / plan.multiplier;
      for (size_t b = 0; b < batches; ++b) {
        run_image(plan, elements<T>(tensors[in]) + b * image_elems,
                  elements<T>(tensors[out]) + b * plan.window.output_px() * plan.channels);
      }
    });
  });
}

}  // namespace skillet::ref
