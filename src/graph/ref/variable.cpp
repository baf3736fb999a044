// READ_VARIABLE and ASSIGN_VARIABLE: copies of the bytes.
#include <cstring>

#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

KernelPtr copy(const Context& c) {
  return make_kernel([in = c.input_index(0), out = c.output_index()](Tensors t) {
    if (!t[in].empty()) std::memcpy(t[out].data(), t[in].data(), std::min(t[in].size(), t[out].size()));
  });
}

}  // namespace

Result<KernelPtr> prepare_read_variable(const Context& c) { return copy(c); }
Result<KernelPtr> prepare_assign_variable(const Context& c) { return copy(c); }

}  // namespace skillet::ref
