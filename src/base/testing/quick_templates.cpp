// What tests and libraries instantiate of the standard library, optimised. Tests are compiled without optimisation, and
// the linker keeps the first copy of an inline function that it meets, for the libraries too: this object comes first.
// Called by nobody: cmake/skillet.cmake links it. It knows nothing of Skillet.
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

template class std::basic_string<char>;
template class std::vector<std::string>;
template class std::set<std::string>;
template class std::map<std::string, std::string>;
template class std::vector<int8_t>;
template class std::vector<uint8_t>;
template class std::vector<uint16_t>;
template class std::vector<int32_t>;
template class std::vector<uint32_t>;
template class std::vector<int64_t>;
template class std::vector<uint64_t>;
template class std::vector<float>;
template class std::vector<double>;
template class std::mersenne_twister_engine<uint_fast32_t, 32, 624, 397, 31, 0x9908b0dfUL, 11, 0xffffffffUL, 7,
                                            0x9d2c5680UL, 15, 0xefc60000UL, 18, 1812433253UL>;  // std::mt19937
