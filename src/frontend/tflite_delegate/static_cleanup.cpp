// With libstdc++ linked in statically each load of the plug-in has a copy of it, which keeps a reserve of 70 kB for
// exceptions: returned here, when the library is unloaded, or loading and unloading would leak.
namespace __gnu_cxx {
void __freeres() noexcept;
}

namespace {
__attribute__((destructor)) void return_reserve() { __gnu_cxx::__freeres(); }
}  // namespace
