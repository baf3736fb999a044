// RegisterUse: the meaning of the registers in force for one operation: which of them it uses, and what its addresses
// refer to. Called by decode.cpp. Must not know: captures, fields.
#pragma once

#include <optional>
#include <string>

#include "npu/driver.h"
#include "npus/ethosu/hw/registers.h"

namespace skillet::npus::ethosu {

// Kinds of operations, as bits.
enum OperationKind : unsigned { kConv = 1, kDepthwise = 2, kPool = 4, kElementwise = 8, kTransfer = 16 };

// 0: the command starts no operation.
unsigned operation_of(uint32_t code);
// All kinds of operations that use a register.
unsigned operations_of(const bits::Descriptor& row);

class RegisterUse {
 public:
  // `start`: the payload of the command that starts the operation. The registers must not change meanwhile.
  RegisterUse(const ::skillet::ethosu::hw::Registers& registers, unsigned operation, std::span<const uint32_t> start);

  // The target of a register whose value is an offset into a region.
  struct Address {
    uint32_t region = 0;
    uint64_t bytes = 0;  // size from there on; 0: not known
    bool is_constant = false, is_output = false, is_unused = false;
  };
  std::optional<Address> address(const bits::Descriptor& row) const;
  std::string shape() const;
  npu::WrittenImage image() const;

 private:
  struct Size {
    uint64_t height = 0, width = 0, depth = 0;
  };
  Size output() const;
  Size input() const;
  Size input2() const;
  bool has_input2() const;
  std::optional<Address> tile(uint32_t code) const;
  template <typename Base0, typename Region, typename Width0, typename Height0, typename Height1>
  std::optional<Address> tile_of(uint32_t code, Size (RegisterUse::*size_of)() const) const;
  std::optional<Address> transfer(uint32_t code) const;

  const ::skillet::ethosu::hw::Registers& registers_;
  unsigned operation_;
  uint32_t start_;
};

}  // namespace skillet::npus::ethosu
