// The table of ioctls.
#include <array>

#include "kernels/etnaviv/describe.h"
#include "kernels/etnaviv/fake/file.h"
#include "kernels/fake/calls.h"

namespace skillet::fake::etnaviv {
namespace {

using File = EtnavivFile;
// By number.
constexpr auto kCalls = [] {
  std::array<Call<File>, kernels::kCallNumbers> calls{};
#define CALL(Args, method, name, request) add_call<abi::Args, &File::method>(calls, name, abi::request);
#define DRM_CALL(Args, method, name, request) add_call<drm::Args, &File::method>(calls, name, drm::request);
#include "kernels/api/drm_calls.def"
#include "kernels/etnaviv/calls.def"
#undef DRM_CALL
#undef CALL
  return calls;
}();

}  // namespace

std::vector<std::string_view> call_names() { return names_of<File>(kCalls); }

int EtnavivFile::ioctl(unsigned long request, void* argument) {
  return run_call<EtnavivFile>(kCalls, kernel_, *this, request, argument);
}

}  // namespace skillet::fake::etnaviv
