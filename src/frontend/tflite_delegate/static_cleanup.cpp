// With static libstdc++ each load of the plug-in has its own copy, with a reserve of 70 kB for exceptions. It is freed
// here on unload; otherwise loading and unloading would leak.
namespace __gnu_cxx {
void __freeres() noexcept;
}

namespace {
__attribute__((destructor)) void return_reserve() { __gnu_cxx::__freeres(); }
}  // namespace
