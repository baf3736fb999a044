// Calls of a kernel driver as text, by number: for traces of a program's calls.
// Called by emulated kernel drivers and by recorders, which have the rows of kernels/<kernel>/calls.def.
// Must not know: any single kernel driver, what the calls do.
#pragma once

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/user_memory.h"
#include "kernels/api/drm.h"

namespace skillet::kernels {

// Texts for the arguments of calls that all DRM drivers share.
namespace drm {
inline std::string describe(const GetCap& args) { return fmt::format("{:#x} -> {}", args.capability, args.value); }
inline std::string describe(const GemClose& args) { return fmt::format("handle {}", args.handle); }
inline std::string describe(const PrimeHandle& args) {
  return fmt::format("handle {}, flags {:#x}, descriptor {}", args.handle, args.flags, args.fd);
}
}  // namespace drm

constexpr size_t kArgumentBytesMax = 128;
constexpr size_t kCallNumbers = 0x60;  // DRM's own calls; from 0x40 on those of drivers

struct CallText {
  std::string_view name;                                    // empty: no call has this number
  size_t size_bytes = 0;                                    // of the argument
  std::string (*describe)(const void* argument) = nullptr;  // after the call; null: nothing to print
};

template <typename Args>
constexpr CallText text_of(std::string_view name) {
  static_assert(sizeof(Args) <= kArgumentBytesMax);
  if constexpr (requires(const Args& args) { describe(args); })
    return {name, sizeof(Args), [](const void* args) { return describe(*static_cast<const Args*>(args)); }};
  else
    return {name, sizeof(Args), nullptr};
}

// "gem_close handle 3: fine, 0.002 ms", or with the name of the errno if the call failed.
inline std::string call_line(const CallText& call, const void* argument, int result, double ms) {
  const bool is_described = call.describe != nullptr;
  const char* const number = result == 0 ? "fine" : ::strerrorname_np(-result);
  return fmt::format("{}{}{}: {}, {:.3f} ms", call.name, is_described ? " " : "",
                     is_described ? call.describe(argument) : "", number == nullptr ? "?" : number, ms);
}

// The same for a call whose argument is in the process's memory. An argument that cannot be read, or is in no row, is
// left out.
inline std::string call_line(std::span<const CallText> calls, unsigned long request, uint64_t argument, int result,
                             double ms) {
  const unsigned number = _IOC_NR(request);
  if (number >= calls.size() || calls[number].name.empty())
    return call_line({.name = fmt::format("number {:#x}", number)}, nullptr, result, ms);
  alignas(8) uint8_t args[kArgumentBytesMax] = {};
  const CallText& call = calls[number];
  if (copy_from_user(args, argument, std::min<size_t>(call.size_bytes, _IOC_SIZE(request))) != 0)
    return call_line({.name = call.name}, nullptr, result, ms);
  return call_line(call, args, result, ms);
}

}  // namespace skillet::kernels
