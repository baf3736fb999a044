// Kernels of two operands with broadcast, built from a function of two elements.
// Called by elementwise ops of two operands.
// Must not know: the arithmetic of single ops.
#pragma once

#include "graph/ref/broadcast.h"
#include "graph/ref/types.h"

namespace skillet::ref {

// f(a, b) for every pair; operands are loaded bytewise because constants may be unaligned.
template <typename T, typename F>
KernelPtr elementwise(const Context& c, F f) {
  return make_kernel([f, broadcast = Broadcast(c.input(0).shape, c.input(1).shape), a = c.input_index(0),
                      b = c.input_index(1), out = c.output_index()](Tensors t) {
    broadcast.for_each_row([&](size_t a_at, size_t a_step, size_t b_at, size_t b_step, size_t out_at) {
      T* to = elements<T>(t[out]) + out_at;
      const uint8_t *from_a = t[a].data() + a_at * sizeof(T), *from_b = t[b].data() + b_at * sizeof(T);
      const auto row = [&, count = broadcast.row_elems()](size_t step_a, size_t step_b) {
        for (size_t i = 0; i < count; ++i) {
          to[i] = f(load_le<T>(from_a + i * step_a * sizeof(T)), load_le<T>(from_b + i * step_b * sizeof(T)));
        }
      };
      // The compiler vectorizes the loop if both steps are known.
      a_step == 1 && b_step == 1 ? row(1, 1) : row(a_step, b_step);
    });
  });
}

// The same for operands of one of these types.
template <typename... Ts, typename F>
Result<KernelPtr> elementwise_of(const Context& c, F f) {
  return with_one_of<Ts...>(c, c.input(0).dtype, [&](auto type) { return elementwise<decltype(type)>(c, f); });
}

// int16 operands and result, for prepare functions of other types.
Prepare prepare_int16_mul, prepare_int16_prelu;
Result<KernelPtr> prepare_int16_sum(const Context& c, bool subtract);

}  // namespace skillet::ref
