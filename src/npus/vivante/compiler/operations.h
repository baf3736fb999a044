// Device operations of a lowered graph, one small struct per hardware unit, and the memory slots they use. Written by
// lower.cpp, read by tile, weights and encode. Must not know: bit positions, device addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "graph/ir/graph.h"
#include "npus/vivante/hw/vivante.h"
#include "program/program.h"

namespace skillet::npus::vivante {

namespace hw = skillet::vivante::hw;

// Order of a tensor's elements in a slot. nchw_planar: all of channel 0, then all of channel 1, ... without gaps.
enum class Layout : uint8_t { nhwc, nchw_planar };

using SlotId = uint32_t;
constexpr SlotId kNoSlot = 0xffffffff;

// A piece of device memory: a tensor's data in one layout. A slot with a parent is a sub-range of it.
struct Slot {
  std::string name;
  uint64_t size_bytes = 0;
  SlotId parent = kNoSlot;
  uint64_t offset_bytes = 0;  // in the parent
  npu::BufferRole role = npu::BufferRole::scratch;
};

// Width, height and channels of an image, in px; planes are width * height bytes.
struct Image {
  int32_t width = 1, height = 1, channels = 1;
  int64_t plane_bytes() const { return int64_t{width} * height; }
  int64_t bytes() const { return plane_bytes() * channels; }
  bool layouts_coincide() const { return channels == 1 || plane_bytes() == 1; }  // NHWC and planar are the same bytes
};

// Filters of one NN job after all lowering. Weights are unsigned; the coefficient writer decides their order in a
// stream.
// Kernel oc has weights in input channels [first_channel(oc), first_channel(oc) + band), and zero_point elsewhere.
struct Kernels {
  int32_t output_channels = 0;
  int32_t input_channels = 0;
  int32_t height = 1, width = 1;
  int32_t band = 0;              // input channels with weights; == input_channels for a full convolution
  int32_t kernels_per_band = 0;  // depthwise: kernels that share a band (depth multiplier); 0: full convolution
  uint8_t zero_point = 0;
  uint8_t model_xor = 0;  // XOR that restores the model's own byte of a weight: 0x80 for int8 models
  // [oc][band][row][column]. A view of the model's own bytes if they need no change, else of `lowered`.
  std::span<const uint8_t> weights;
  std::shared_ptr<const Bytes> lowered;
  std::vector<int32_t>
      biases;               // per oc, as the chip adds them, with the number that it subtracts from pixels folded in
  int32_t filler_bias = 0;  // of kernels beyond output_channels (weights_v7.cpp)

  int32_t patch_elems() const { return height * width; }
  int32_t first_channel(int32_t oc) const { return kernels_per_band == 0 ? 0 : oc / kernels_per_band * band; }
};

// The length of magnitude of each symbol of a V8 stream.
enum class SymbolMapChoice : uint8_t {
  recorded,  // as the recorded driver chooses
  smallest,  // the fewest bytes that the format allows
};

// One job of the NN cores: a stride-1 convolution, optionally keeping only the first pixel of each 2x2.
struct NnOperation {
  SlotId input = kNoSlot, output = kNoSlot;
  Image in, out;                       // `out` is the stored size; with first_pixel twice that is computed
  int32_t offset_x = 0, offset_y = 0;  // input px of output px 0: -pad_before
  int32_t stride = 1;                  // of the model's operation; used only for the tile height
  int32_t tile_basis_width = 0, tile_basis_height = 0;  // 0: from `out`. Additions: see lower_add
  int32_t tile_rows = 0;                                // most rows of an output tile; 0: as many as fit
  bool first_pixel = false;
  bool relu = false;
  bool depthwise = false;          // native: one input channel per kernel
  bool sram_caches = true;         // keep kernels and image tiles in on-chip memory
  bool six_channel_order = false;  // V7, 1x1 filters: weights in groups of six channels
  bool search_zero_runs = true;    // false: plain weight bytes, no zero-run prefix
  bool v8_coefficients = false;    // in V8's format on any generation
  bool raw_weights = false;        // in that format: unchanged bytes, without subtracting their zero point
  SymbolMapChoice symbol_map = SymbolMapChoice::recorded;
  uint8_t input_zero_point = 0, output_zero_point = 0;
  float scale = 1;  // real multiplier of the accumulator
  Kernels kernels;
};

// One job of the TP cores, one instruction per core. Address symbols are SlotIds, or kTableSymbol.
struct TpOperation {
  static constexpr uint32_t kTableSymbol = 0xfffffffe;
  SlotId input = kNoSlot, output = kNoSlot;
  std::vector<hw::TpInstruction> instructions;
  std::vector<uint32_t> table;     // piecewise linear table, kPwlEntries, or empty
  bool tp_no_flush_state = false;  // PAD, RELU, ABS: 0x3950 <- 8 on all but the last core
};

struct Operation {
  ir::OpId op = -1;  // of the graph; -1: inserted layout change
  std::string kind;  // "NN conv 3x3", "TP transpose"
  std::variant<NnOperation, TpOperation> job;
};

// The place of a graph tensor in a slot.
struct PlacedTensor {
  ir::TensorId tensor = ir::kNoTensor;
  SlotId slot = kNoSlot;
  Layout layout = Layout::nhwc;
};

struct Lowered {
  std::vector<Slot> slots;
  std::vector<Operation> operations;
  std::vector<PlacedTensor> inputs, outputs, intermediates;
};

// Root slot and total offset of a slot.
struct Place {
  SlotId root = kNoSlot;
  uint64_t offset_bytes = 0;
};
Place place_of(const std::vector<Slot>& slots, SlotId slot);
// Error: an operation uses a slot that does not exist.
Result<void> check_slots(const Lowered& lowered);

}  // namespace skillet::npus::vivante
