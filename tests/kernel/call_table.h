// The ioctls that a list of calls may name, with the fields of their arguments: number, offsets, and which fields the
// kernel fills in. Called by calls.cpp. Must not know: the values of fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace skillet::kernel_test {

enum class Kind : uint8_t {
  in,          // set by the caller only
  out,         // filled in: printed as a number
  layout,      // filled in: an address or offset, which differs between kernels
  descriptor,  // filled in: a descriptor of the process
  name         // filled in: text
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

// Returns the ioctls of DRM's core and of the kernel driver.
std::vector<CallRow> calls_of(std::string_view driver);

}  // namespace skillet::kernel_test
