// The table of ioctls.
#include <array>

#include "kernels/etnaviv/describe.h"
#include "kernels/etnaviv/fake/file.h"
#include "kernels/fake/calls.h"

namespace skillet::fake::etnaviv {
namespace {

using File = EtnavivFile;
#define CALLS "kernels/etnaviv/calls.def"
#include "kernels/fake/call_table.def"

}  // namespace

std::vector<std::string_view> call_names() { return names_of<File>(kCalls); }

int EtnavivFile::ioctl(unsigned long request, void* argument) {
  return run_call<EtnavivFile>(kCalls, kernel_, *this, request, argument);
}

}  // namespace skillet::fake::etnaviv
