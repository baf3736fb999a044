// Rockchip NPU: registers, commands and chips, as rows and structs. No logic.
// Called by npus/rockchip/compiler (encodes), npus/rockchip/sim (decodes), tools through the driver.
// Must not know: how a driver or simulator uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bits/bits.h"

namespace skillet::rockchip::hw {

using bits::Address;
using bits::Blob;

#define SK_BITS_FILE "npus/rockchip/hw/enums.def"
#include "bits/declare_enums.h"

// One struct per register: CnaConvCon1, DpuBsCfg, DpuRdmaFeatureModeCfg, ...
#define SK_BITS_FILE "npus/rockchip/hw/registers.def"
#include "bits/declare_set.h"

// The registers with another layout on the RK3576: rk3576::CnaConvCon1, ...
namespace rk3576 {
#define SK_BITS_FILE "npus/rockchip/hw/registers_3576.def"
#include "bits/declare_set.h"
}  // namespace rk3576

#define SK_BITS_TYPE Command
#define SK_BITS_WORDS 2
#define SK_BITS_FILE "npus/rockchip/hw/command.def"
#include "bits/declare.h"

#define SK_BITS_TYPE BlockEnable
#define SK_BITS_WORDS 1
#define SK_BITS_FILE "npus/rockchip/hw/block_enable.def"
#include "bits/declare.h"

constexpr uint32_t kCommandBytes = 8;
constexpr uint32_t kStreamAlignBytes = 16;    // of the first command; drivers use 64
constexpr uint32_t kBlockBytes = 0x1000;      // registers of a block begin at multiples of this
constexpr uint32_t kFirstShadowed = 8;        // registers of a block from here on exist once per group
constexpr uint32_t kEnableAddress = 8;        // address of the command that starts blocks
constexpr uint32_t kPointerPingPong = 0xE;    // s_pointer: both pointers alternate by themselves
constexpr uint32_t kTaskCon = 0x7001;         // written by the kernel to start one task
constexpr uint32_t kInterruptsOfDpu = 0x300;  // the only completion bits that the mainline kernel reads

const bits::RegisterSet& registers();

enum ChipFlag : uint32_t {
  kRegisters3588 = 1,      // registers() is its register layout
  kStreamsPoint = 32,      // streams write the pointers of CNA and CORE
  kPoolingCompletes = 64,  // its kernel drivers see when the pooling unit is done
  kOneShift = 128,         // the multipliers of a program's channels share one shift
  kFoursOfPixels = 256,    // surfaces are a multiple of four pixels long, or one pixel
  kOnePadValue = 512,      // padding has one value of 32 bits, not a byte per lane
  kPoolsMaxima = 1024,     // the pooling unit is proven for maxima; otherwise maxima are of two bytes, step by step
  kPairsOfSums = 2048,  // sums are convolutions over both operands, side by side; otherwise the DPU adds the second one
  kTablesBehind = 4096,     // tables are looked up after a convolution; otherwise by the DPU alone
  kReadsGroups = 8192,      // convolutions read whole groups of 32 channels
  kSurfacesOnly = 16384,    // images of few channels are also in surfaces; an operation has no other choice
  kVendorRecorded = 32768,  // its recorded programs are those of the vendor's compiler
  kZeroPerKernel = 16,      // each kernel may have a zero point of its own
  kRegisters3576 = 8,       // registers_3576.def, and registers() for those that it lacks
  kBelow4GiB = 2,           // buffers must be below 4 GiB of physical memory
  kOneCoreAtATime = 4,      // two busy cores corrupt each other's buffers
};
struct ChipRow {
  std::string_view name, title, compatible;
  int cores;
  int cbuf_banks;
  uint32_t cbuf_bank_bytes, cbuf_unit_bytes;
  int atom_bytes;          // channels of one pixel that are stored together
  int kernel_group;        // kernels that are computed together
  int depthwise_group;     // channels that are computed together
  int task_number_bits;    // of pc.task_con
  int commands_per_fetch;  // unit of pc.register_amounts
  uint32_t flags;
  std::string_view missing;  // empty: nothing is missing

  bool has(ChipFlag flag) const { return (flags & flag) != 0; }
  bool has_registers() const { return has(kRegisters3588) || has(kRegisters3576); }
};
// The registers of a chip, if they are described.
const bits::RegisterSet& registers_of(const ChipRow& chip);
std::span<const ChipRow> chips();
const ChipRow* find_chip(std::string_view name);

}  // namespace skillet::rockchip::hw
