// The table of ioctls of an emulated kernel driver (number, name, argument), and the copying of arguments as in a
// kernel.
// Called by the files of emulated kernel drivers.
// Must not know: any single kernel driver.
#pragma once

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/stopwatch.h"
#include "kernels/api/call_text.h"
#include "kernels/fake/kernel.h"

namespace skillet::fake {

template <typename File>
struct Call {
  kernels::CallText text;
  unsigned direction = _IOC_NONE;  // of its argument, as the kernel driver declares it
  int (*run)(File& file, void* args, const Fault& fault) = nullptr;
};

// Adds a call at the number of its request. kMethod: int (Args&), or int (Args&, const Fault&), of File or a base
// class.
template <typename Args, auto kMethod, typename File, size_t kCount>
constexpr void add_call(std::array<Call<File>, kCount>& calls, std::string_view name, unsigned long request) {
  calls[_IOC_NR(request)] = {kernels::text_of<Args>(name), static_cast<unsigned>(_IOC_DIR(request)),
                             [](File& file, void* args, const Fault& fault) {
                               if constexpr (std::is_invocable_v<decltype(kMethod), File&, Args&>)
                                 return std::invoke(kMethod, file, *static_cast<Args*>(args));
                               else
                                 return std::invoke(kMethod, file, *static_cast<Args*>(args), fault);
                             }};
}

// Names of calls that a FaultPlan may use.
template <typename File>
std::vector<std::string_view> names_of(std::span<const Call<File>> calls) {
  std::vector<std::string_view> names = {"open", "mmap"};
  for (const Call<File>& call : calls) {
    if (call.run != nullptr) names.push_back(call.text.name);
  }
  return names;
}

// The result for a number without a row: that of DRM's core, which supports some.
int answer_unknown(Kernel& kernel, const File& file, unsigned number);

// As in the kernel: an argument shorter than ours is padded with zeros, a longer one is truncated. It is read and
// written only if both the request and the driver allow it.
template <typename File>
int run_call(std::span<const Call<File>> calls, Kernel& kernel, File& file, unsigned long request, void* argument) {
  const unsigned number = _IOC_NR(request);
  if (number >= calls.size() || calls[number].run == nullptr) return answer_unknown(kernel, file, number);
  const Call<File>& call = calls[number];
  const Fault fault = kernel.next_fault(call.text.name);
  if (fault.kind == FaultKind::number) return kernel.inject(fault, call.text.name);

  alignas(8) uint8_t args[kernels::kArgumentBytesMax];
  const size_t size = std::min<size_t>(call.text.size_bytes, _IOC_SIZE(request));
  const unsigned direction = call.direction & _IOC_DIR(request);
  std::memset(args, 0, call.text.size_bytes);
  const size_t read = (direction & _IOC_WRITE) != 0 ? size : 0;
  if (const int failure = kernel.copy_from_user(args, reinterpret_cast<uint64_t>(argument), read); failure != 0)
    return kernel.refuse(-failure, "{}: bad pointer to the argument", call.text.name);
  const std::optional<Stopwatch> clock =
      kernel.options().traces ? std::optional<Stopwatch>(std::in_place) : std::nullopt;
  int result = call.run(file, args, fault);
  if ((direction & _IOC_READ) != 0 && kernel.copy_to_user(reinterpret_cast<uint64_t>(argument), args, size) != 0)
    result = kernel.refuse(EFAULT, "{}: the argument cannot be written", call.text.name);
  if (clock) kernel.trace("{}", kernels::call_line(call.text, args, result, clock->ms()));
  return result;
}

// Copies as much of `text` as fits; sets the length to that of the whole text. -EFAULT: `to` cannot be written.
int give_text(Kernel& kernel, std::string_view text, char* to, size_t& length);
int give_version(Kernel& kernel, std::string_view name, std::string_view date, std::string_view description,
                 kernels::drm::Version& args);

}  // namespace skillet::fake
