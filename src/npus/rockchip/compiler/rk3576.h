// The RK3576's side of packing.h: registers_3576.def as programs use them, its weights and operands, its on-chip
// buffer. Called by packing.cpp. Must not know: graphs.
#pragma once

#include <algorithm>
#include <string>

#include "npus/rockchip/compiler/packing.h"

namespace skillet::npus::rockchip::rk3576 {

constexpr int32_t kGroup = 32;  // of channels and kernels, where only whole groups are programmed

// ---- tile ----
Geometry geometry(const Conv& conv, const Tuning& tuning);
Result<Split> split(const hw::ChipRow& chip, const Conv& conv, const Geometry& g, const Tuning& tuning);
// Why a task of the first core does not fit the on-chip buffer; empty: it fits.
std::string overfull(const hw::ChipRow& chip, const Conv& conv, const Geometry& g, const Task& task);
// On-chip units of a row.
int32_t row_entries(int32_t channels, int32_t width);

// ---- registers ----
// Rows or columns of padding after a plane: those that the last window reads past its end.
constexpr uint32_t behind(int32_t outputs, int32_t stride, int32_t kernel, int32_t before, int32_t size) {
  return static_cast<uint32_t>(std::max((outputs - 1) * stride + kernel - before - size, 0));
}
Result<Commands> write_commands(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& places,
                                const Tuning& tuning, const NextTask* next, bool chained);
Result<Commands> write_pool(const Pool& pool, const PoolPlaces& at);
std::string refuses(const Conv& conv);
// Whether the chip takes an operation, given `otherwise`, the answer for the RK3588.
npu::Support takes(const ir::Graph& graph, ir::OpId op, const npu::Support& otherwise);
// Rows of assumptions_3576.def: all, and those that an operation that the chip takes stands on.
std::span<const npu::Assumption> assumptions();
std::vector<const npu::Assumption*> assumptions_of(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op);
// The program that loads a convolution's table.
Result<Commands> write_table(const Conv& conv, const TaskPlaces& places);
// Rounded up to four pixels; one pixel stays one.
constexpr int64_t in_fours(int64_t pixels) { return pixels == 1 ? 1 : (pixels + 3) / 4 * 4; }

// ---- weights ----
void pack_weights(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out);
uint64_t weights_offset(const Conv& conv, const Geometry& g, const Task& task);
void pack_operands(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out);
uint64_t operands_offset(const Conv& conv, const Task& task);
uint64_t shifts_offset(const Conv& conv, const Geometry& g);

// ---- rounding ----
Result<void> set_scales(std::span<const float> products, float out_scale, std::optional<double> limit, bool first_units,
                        Conv& conv);
std::vector<int32_t> ends_of_parts(std::span<const float> products, float out_scale, const Conv& conv);
Result<void> set_fine_scale(double gain, std::optional<double> limit, double out_scale, Conv& conv);

}  // namespace skillet::npus::rockchip::rk3576
