// Arguments of this kernel driver's calls, for people who watch a program.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <fmt/format.h>

#include <string>

#include "kernels/etnaviv/abi.h"

namespace skillet::kernels::etnaviv {
// Absolute, of the monotonic clock.
inline std::string until(const Timespec& time) { return fmt::format("until {}.{:09} s", time.sec, time.nsec); }

inline std::string describe(const GetParam& args) {
  return fmt::format("pipe {}, parameter {:#x} -> {:#x}", args.pipe, args.param, args.value);
}
inline std::string describe(const GemNew& args) {
  return fmt::format("{} bytes, flags {:#x} -> handle {}", args.size, args.flags, args.handle);
}
inline std::string describe(const GemInfo& args) {
  return fmt::format("handle {} -> offset {:#x}", args.handle, args.offset);
}
inline std::string describe(const GemCpuPrep& args) {
  return fmt::format("handle {}, op {:#x}, {}", args.handle, args.op, until(args.timeout));
}
inline std::string describe(const GemCpuFini& args) { return fmt::format("handle {}", args.handle); }
inline std::string describe(const GemSubmit& args) {
  return fmt::format("pipe {}, {} bytes of commands, {} buffers, {} relocations, flags {:#x} -> fence {}", args.pipe,
                     args.stream_size, args.nr_bos, args.nr_relocs, args.flags, args.fence);
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
