// Templates of the standard library that tests and libraries instantiate, compiled with optimisation. Tests are
// compiled without it, and the linker keeps the first copy of an inline function, for the libraries too: this object
// comes first. Not called: cmake/skillet.cmake links it. Independent of Skillet.
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

// clang does not instantiate the iterators of vectors either.
#define SKILLET_VECTOR(T)        \
  template class std::vector<T>; \
  SKILLET_ITERATOR(T*, T)        \
  SKILLET_ITERATOR(const T*, T)
#define SKILLET_ITERATOR(P, T)                                                                                       \
  template class __gnu_cxx::__normal_iterator<P, std::vector<T>>;                                                    \
  template bool __gnu_cxx::operator==                                                                                \
      <P, std::vector<T>>(const __normal_iterator<P, std::vector<T>>&, const __normal_iterator<P, std::vector<T>>&); \
  template std::ptrdiff_t __gnu_cxx::operator-                                                                       \
      <P, std::vector<T>>(const __normal_iterator<P, std::vector<T>>&, const __normal_iterator<P, std::vector<T>>&);

template class std::basic_string<char>;
SKILLET_VECTOR(std::string)
template class std::set<std::string>;
template class std::map<std::string, std::string>;
SKILLET_VECTOR(int8_t)
SKILLET_VECTOR(uint8_t)
SKILLET_VECTOR(uint16_t)
SKILLET_VECTOR(int32_t)
SKILLET_VECTOR(uint32_t)
SKILLET_VECTOR(int64_t)
SKILLET_VECTOR(uint64_t)
SKILLET_VECTOR(float)
SKILLET_VECTOR(double)
template class std::mersenne_twister_engine<uint_fast32_t, 32, 624, 397, 31, 0x9908b0dfUL, 11, 0xffffffffUL, 7,
                                            0x9d2c5680UL, 15, 0xefc60000UL, 18, 1812433253UL>;  // std::mt19937
