// What a convolution occupies, and its division into tasks that fit the on-chip buffer. Hardware specification 4.1, 6.
// Called by support.cpp (does it fit), encode.cpp.
// Must not know: graphs, register fields, memory.
#pragma once

#include "base/result.h"
#include "npus/rockchip/compiler/operations.h"
#include "npus/rockchip/compiler/tuning.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

namespace hw = ::skillet::rockchip::hw;

constexpr int32_t kAtom = 16;        // channels of a pixel that are stored together
constexpr int32_t kZeroPoint = 128;  // of signed bytes that are counted as unsigned ones
constexpr int32_t kKernelGroup = 32, kLaneGroup = 32, kDepthwiseGroup = 64;
constexpr int64_t kSurfaceMin = 12;  // least pixels of a surface for readers of an addition (section 4.5)

// Sizes of a whole convolution as its tasks program them.
struct Geometry {
  int32_t in_lanes = 0;   // input channels that are read
  int32_t out_lanes = 0;  // output channels that are written
  int32_t kernels = 0;    // stored
  bool packed = false;    // rows of pixels; recorded: the mode bits may be set without it
  int32_t row_width = 0;  // columns of a row in the on-chip buffer
  int32_t line_stride = 0, surface_stride = 0;
  int32_t row_entries = 0;   // on-chip units of a row; packed: of 16 bytes
  int64_t out_surface = 0;   // pixels from one output surface to the next
  int64_t kernel_bytes = 0;  // of one kernel; depthwise: of all channels
  int64_t weight_bytes() const { return kernel_bytes * kernels; }
};
Geometry geometry(const Conv& conv, const Tuning& tuning);
// On-chip units of a row with `atoms` atoms in each pixel.
int32_t entries_of(int32_t atoms, int32_t width);
// Input lanes that a depthwise task with these output lanes reads.
int32_t read_lanes(const Geometry& g, int32_t first_lane, int32_t lanes);
// Pixels from one surface of a tensor to the next.
int64_t surface_pitch(const Plane& plane, const Tuning& tuning);
// The same for the convolution's input.
int64_t in_pitch(const Conv& conv);

// Where a program runs, on a chip with one on-chip buffer for two cores: alone on a core, or as half of two programs.
enum class CoreUse : uint8_t { first, second, upper_half, lower_half };

// Output rows and channels that one start of the blocks computes.
struct Task {
  int32_t top = 0, rows = 0;  // of the input
  int32_t pad_top = 0;
  int32_t out_top = 0, out_rows = 0;
  int32_t first_lane = 0, lanes = 0;  // output channels; depthwise: also input channels
  int32_t data_banks = 0, weight_banks = 0;
  bool reuse_weights = false;  // of the task before
  CoreUse use = CoreUse::first;
  bool one_of_two = false;  // rows are halved, but each half runs alone on its core
  bool dummy = false;       // the empty program after such a half
};
// The input rows that these output rows read, and no more.
Task rows_from(const Conv& conv, int32_t out_top, int32_t out_rows);
struct Split {
  std::vector<Task> tasks;
  bool one_job = true;  // recorded: of all tasks
};
// Error: not even one output row fits; a message for the user.
Result<Split> split(const hw::ChipRow& chip, const Conv& conv, const Geometry& g, const Tuning& tuning);

// Bytes that the operation reads and writes from the beginning of its places on.
uint64_t input_bytes(const Conv& conv, const Geometry& g);
uint64_t output_bytes(const Conv& conv, const Geometry& g);

// An estimate for the kernel's limit on a job's time, at the lowest clock that mainline kernels use.
double predicted_ms(const Conv& conv, const Geometry& g, const Task& task);
// The same for a task of the DPU alone.
double predicted_ms(int64_t atoms);

}  // namespace skillet::npus::rockchip
