// Vivante NPU: descriptors, states and chips, as rows and structs. No logic.
// Called by npus/vivante/compiler (encodes), npus/vivante/sim (decodes), tools through the driver.
// Must not know: how a driver or simulator uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bits/bits.h"

namespace skillet::vivante::hw {

using bits::Address;

#define SK_BITS_FILE "npus/vivante/hw/enums.def"
#include "bits/declare_enums.h"

#define SK_BITS_TYPE NnInstruction
#define SK_BITS_WORDS 32
#define SK_BITS_FILE "npus/vivante/hw/nn_instruction.def"
#include "bits/declare.h"

#define SK_BITS_TYPE TpInstruction
#define SK_BITS_WORDS 31
#define SK_BITS_FILE "npus/vivante/hw/tp_instruction.def"
#include "bits/declare.h"

#define SK_BITS_TYPE NnConfig
#define SK_BITS_WORDS 1
#define SK_BITS_FILE "npus/vivante/hw/state_nn_config.def"
#include "bits/declare.h"

#define SK_BITS_TYPE VipFlushControl
#define SK_BITS_WORDS 1
#define SK_BITS_FILE "npus/vivante/hw/state_vip_flush_control.def"
#include "bits/declare.h"

// The same fields in the V8 generation's bits.
struct NnInstructionV8 : NnInstruction {
  static const bits::Descriptor& descriptor();
};

constexpr uint32_t kNnInstructionWords = 32;
constexpr uint32_t kTpInstructionWords = 31;
constexpr uint32_t kDescriptorAlignBytes = 64;
constexpr uint64_t kCircularBufferOff = uint64_t{0x03FFFFFF} << 6;  // in bytes, as in the rows
constexpr uint32_t kNnConstantWord28 = 0x03FFFFFF;
constexpr uint32_t kPwlEntries = 1024;

enum class State : uint32_t {
#define STATE(name, address, doc) name = address,
#include "npus/vivante/hw/states.def"
#undef STATE
};
struct StateRow {
  State state;
  const char* name;
  const char* doc;
};
std::span<const StateRow> states();
// Name of a state address; empty if there is none.
std::string_view state_name(uint32_t address);

// Front-end packets (bits 31:27 of a command word).
enum class Opcode : uint32_t { load_state = 1, end = 2, nop = 3, wait = 7, link = 8, stall = 9 };
constexpr uint32_t load_state_word(State state) {
  return (uint32_t{1} << 27) | (1U << 16) | (static_cast<uint32_t>(state) / 4);
}
constexpr uint32_t kFlushBatch = 0xC23;  // flush_cache value that closes a batch
constexpr uint32_t kPaSystemMode = 0x11;
constexpr uint32_t kApiModeCl = 2;

struct ChipIds {
  uint32_t model, revision, product, eco, customer;
};
enum ChipFlag : uint32_t {
  kFirstPixelPooling = 1,
  kCoefficientEnhancement = 2,  // V8-style coefficient header
  kNoZOffset = 4,
  kDepthwise = 8,    // native depthwise
  kSlowOutput = 16,  // has the slow_output bit
  kSramCaches = 32,  // caching kernels and image tiles in on-chip memory is known to work with a driver
  kIdsOnly = 64,     // the product that contains it is not known
};
struct ChipRow {
  std::string_view name, title;
  ChipIds ids;
  int generation;  // 7 or 8: coefficient format, descriptor variant
  int nn_cores, tp_cores;
  int input_buffer_depth;  // lines
  int accum_buffer_depth;
  uint32_t sram_bytes;
  int zrl_bits_max;
  int offset_bits;      // of in_x_offset, in_y_offset
  int kernel_size_max;  // px, both directions
  int clock_mhz;
  uint32_t flags;
  std::string_view assumption;  // why nothing on this chip is proven, on what evidence, what is missing; or empty

  bool has(ChipFlag flag) const { return (flags & flag) != 0; }
};
std::span<const ChipRow> chips();
const ChipRow* find_chip(std::string_view name);
// By the ids that the kernel reports; the low 4 bits of the revision do not matter (specification section 1.3).
const ChipRow* find_chip(const ChipIds& ids);

// The NN instruction of the chip's generation.
const bits::Descriptor& nn_instruction(const ChipRow& chip);
bits::Typed<NnInstruction> unpack_nn_instruction(const ChipRow& chip, std::span<const uint32_t> words);

// One row of generations.def.
struct Generation {
  int generation;
  // requantization
  int multiplier_bits;  // of post_multiplier, without the leading 1
  int shift_base;       // right shift with post_shift 0, bits
  int pixel_center;     // subtracted from each pixel before the multiplication
  // tiles
  int interleave_narrow;   // most image rows processed together, with tiles of which rows fit in 18 px
  int interleave_wide;     // the same with wider tiles
  bool accumulates_areas;  // the accumulation buffer holds areas of 64 px, else rows
  int tile_rows_max;       // the recorded driver's best value
  // jobs
  int reshuffled_rows_max;      // 1x1 filters with stride 2 become space-to-depth for images of up to this many rows
  int reshuffled_channels_max;  // or of up to this many channels; else first-pixel pooling
  bool no_flush;                // value of the NN instruction's bit
  bool no_flush_holds_back;     // with that bit set, later jobs do not see what the job writes
  bool channel_groups;          // 1x1 filters are read in groups of six channels
  bool linear_filters;          // filters are read as lists, so a fully connected one may cover an image
  bool chunked_additions;       // operands are divided into chunks, and may be subtracted; else they are two channels
  bool recorded_raises_int8;    // the recorded driver makes int8 filters and operands unsigned

  // post_shift of a binary32 scale with biased exponent e is shift_origin() - e.
  constexpr int shift_origin() const { return 127 + multiplier_bits - shift_base; }
};
const Generation& generation_of(const ChipRow& chip);

}  // namespace skillet::vivante::hw
