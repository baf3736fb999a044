// Copies from and to pointers that a process passes to the "kernel": bad ones give -EFAULT, as with a real kernel.
// Called by the emulated kernel drivers and the recorder of their calls.
// Must not know: what is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skillet {

int copy_from_user(void* to, uint64_t from, size_t size_bytes);
int copy_to_user(uint64_t to, const void* from, size_t size_bytes);

template <typename T>
int copy_array_from_user(std::vector<T>& to, uint64_t from, size_t count) {
  to.resize(count);
  return copy_from_user(to.data(), from, count * sizeof(T));
}

}  // namespace skillet
