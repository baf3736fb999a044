// is_any_of(): is a value in a short list? For lists of enumerators, as a switch or a chain of == would say it.
// Called everywhere. Must not know: what the values mean.
#pragma once

#include <initializer_list>
#include <type_traits>

namespace skillet {

template <typename T>
constexpr bool is_any_of(T value, std::initializer_list<std::type_identity_t<T>> list) {
  for (const T one : list)
    if (one == value) return true;
  return false;
}

}  // namespace skillet
