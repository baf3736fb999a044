// The two functions of libhwy that dynamic dispatch calls, so that the plug-in does not need the library: Debian has no
// static one, and few hosts have it installed.
#include <hwy/targets.h>

namespace hwy {

// Only the targets that make a difference for our kernels; other CPUs use the next best one.
int64_t SupportedTargets() {
#if HWY_ARCH_X86
  int64_t targets = HWY_STATIC_TARGET;
  if (__builtin_cpu_supports("ssse3") != 0) targets |= HWY_SSSE3;
  if (__builtin_cpu_supports("sse4.1") != 0 && __builtin_cpu_supports("sse4.2") != 0 &&
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("aes") != 0)
    targets |= HWY_SSE4;
  // The compiler's AVX2 code of Highway uses FMA, BMI and F16C too.
  if ((targets & HWY_SSE4) != 0 && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
      __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("f16c") != 0)
    targets |= HWY_AVX2;
  if ((targets & HWY_AVX2) != 0 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512cd") != 0)
    targets |= HWY_AVX3;
  return targets;
#else
  return HWY_STATIC_TARGET;
#endif
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
