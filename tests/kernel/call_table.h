// The ioctls that a list of calls may name, with the fields of their arguments: number, places, which of them are
// answers. Called by calls.cpp. Must not know: what is asked or answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace skillet::kernel_test {

enum class Kind : uint8_t {
  in,          // the caller's alone
  out,         // answered: printed as a number
  layout,      // answered: where something is, which differs from kernel to kernel
  descriptor,  // answered: a number of the process
  name         // answered: text
};

struct Field {
  std::string_view name;
  size_t offset, bytes;
  Kind kind = Kind::in;
};

struct CallRow {
  std::string_view name;
  unsigned long request;
  std::vector<Field> fields;
};

// Of DRM's core and of one kernel driver.
std::vector<CallRow> calls_of(std::string_view driver);

}  // namespace skillet::kernel_test
