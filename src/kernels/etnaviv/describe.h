// Texts for the arguments of this kernel driver's calls, for traces.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "kernels/etnaviv/abi.h"

namespace skillet::kernels::etnaviv {
// An absolute time of the monotonic clock.
inline std::string until(const Timespec& time) { return fmt::format("until {}.{:09} s", time.sec, time.nsec); }

// Names from parameter 1 on.
inline constexpr std::string_view kParams[] = {"model",
                                               "revision",
                                               "features_0",
                                               "features_1",
                                               "features_2",
                                               "features_3",
                                               "features_4",
                                               "features_5",
                                               "features_6",
                                               "features_7",
                                               "features_8",
                                               "features_9",
                                               "features_10",
                                               "features_11",
                                               "features_12",
                                               "stream_count",
                                               "register_max",
                                               "thread_count",
                                               "vertex_cache_size",
                                               "shader_core_count",
                                               "pixel_pipes",
                                               "vertex_output_buffer_size",
                                               "buffer_size",
                                               "instruction_count",
                                               "num_constants",
                                               "num_varyings",
                                               "softpin_start_addr",
                                               "product_id",
                                               "customer_id",
                                               "eco_id"};
static_assert(std::size(kParams) == kParamEcoId);

inline std::string param_text(uint32_t param) {
  if (param == 0 || param > std::size(kParams)) return fmt::format("parameter {:#x}", param);
  return fmt::format("{} ({:#x})", kParams[param - 1], param);
}

struct Bit {
  uint32_t bit;
  std::string_view name;
};
inline constexpr Bit kBoBits[] = {
    {kBoCached, "cached"}, {kBoWriteCombined, "write_combined"}, {kBoUncached, "uncached"}, {kBoForceMmu, "force_mmu"}};
inline constexpr Bit kPrepBits[] = {{kPrepRead, "read"}, {kPrepWrite, "write"}, {kPrepNoSync, "nosync"}};
inline constexpr Bit kSubmitBits[] = {{kSubmitNoImplicit, "no_implicit"},
                                      {kSubmitFenceFdIn, "fence_fd_in"},
                                      {kSubmitFenceFdOut, "fence_fd_out"},
                                      {kSubmitSoftpin, "softpin"}};

// "0x3 (read, write)"
inline std::string bits_text(uint32_t value, std::span<const Bit> bits) {
  std::string names;
  for (const Bit& one : bits) {
    if ((value & one.bit) != 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  }
  return names.empty() ? fmt::format("{:#x}", value) : fmt::format("{:#x} ({})", value, names);
}

inline std::string describe(const GetParam& args) {
  return fmt::format("pipe {}, {} -> {:#x}", args.pipe, param_text(args.param), args.value);
}
inline std::string describe(const GemNew& args) {
  return fmt::format("{} bytes, flags {} -> handle {}", args.size, bits_text(args.flags, kBoBits), args.handle);
}
inline std::string describe(const GemInfo& args) {
  return fmt::format("handle {} -> offset {:#x}", args.handle, args.offset);
}
inline std::string describe(const GemCpuPrep& args) {
  return fmt::format("handle {}, op {}, {}", args.handle, bits_text(args.op, kPrepBits), until(args.timeout));
}
inline std::string describe(const GemCpuFini& args) { return fmt::format("handle {}", args.handle); }
inline std::string describe(const GemSubmit& args) {
  return fmt::format("pipe {}, {} bytes of commands, {} buffers, {} relocations, flags {} -> fence {}", args.pipe,
                     args.stream_size, args.nr_bos, args.nr_relocs, bits_text(args.flags, kSubmitBits), args.fence);
}
inline std::string describe(const WaitFence& args) {
  return fmt::format("fence {}, flags {:#x}, {}", args.fence, args.flags, until(args.timeout));
}
inline std::string describe(const GemUserptr& args) {
  return fmt::format("{} bytes, flags {:#x} -> handle {}", args.user_size, args.flags, args.handle);
}
inline std::string describe(const GemWait& args) {
  return fmt::format("handle {}, flags {:#x}, {}", args.handle, args.flags, until(args.timeout));
}

}  // namespace skillet::kernels::etnaviv
