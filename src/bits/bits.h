// The descriptor engine: a hardware bit position is written in one row; packing, unpacking, printing, diffing, the
// documentation table and the simulators' decoders are all derived from that row.
// Called by npus/<v>/hw (rows), encoders (pack), simulators and tools (unpack, print, diff).
// Must not know: any chip.
//
// A descriptor type lists its rows in a .def file, one FIELD line per field:
//   FIELD(kernel_depth, uint32_t, raw, at(0, 6, 14) + at(5, 26, 6), confirmed, "input channels")
// bits/declare.h makes the struct from it, bits/define.h the table. A register set is one .def file of many registers,
//   REGISTER(CnaConvCon3, "cna.conv_con3", 0x1014) FIELD(...) FIELD(...) END()
// for bits/declare_set.h and bits/define_set.h. Enums whose values print by name: bits/declare_enums.h.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace skillet::bits {

// A run of bits in a 32-bit word; a field may consist of several, low part first.
struct Piece {
  uint8_t word = 0, lsb = 0, width = 0;
};
struct Where {
  std::array<Piece, 6> pieces{};
  uint8_t count = 0;

  constexpr Where operator+(Where more) const {
    Where sum = *this;
    for (uint8_t i = 0; i < more.count; ++i) sum.pieces[sum.count++] = more.pieces[i];
    return sum;
  }
  constexpr int width() const {
    int bits = 0;
    for (uint8_t i = 0; i < count; ++i) bits += pieces[i].width;
    return bits;
  }
};
constexpr Where at(int word, int lsb, int width) {
  Where where;
  where.pieces[0] = {static_cast<uint8_t>(word), static_cast<uint8_t>(lsb), static_cast<uint8_t>(width)};
  where.count = 1;
  return where;
}

enum class CodecKind : uint8_t { raw, aligned, minus_one, log2_of, always };
struct Codec {
  CodecKind kind = CodecKind::raw;
  uint64_t argument = 0;
};
inline constexpr Codec raw{CodecKind::raw, 0};                           // the value itself
inline constexpr Codec minus_one{CodecKind::minus_one, 0};               // value - 1
inline constexpr Codec log2_of{CodecKind::log2_of, 0};                   // log2(value), a power of two
constexpr Codec aligned(unsigned n) { return {CodecKind::aligned, n}; }  // value >> n, low n bits must be 0
constexpr Codec always(uint64_t v) { return {CodecKind::always, v}; }    // this constant; the member is ignored

enum class Evidence : uint8_t {
  documented,  // stated in a manual
  confirmed,   // varied in captures of a driver known to work on silicon
  inferred,
  guessed,
};

// A device address: absolute if symbol == kAbsolute, else relative to a buffer whose address is not known yet. Packing
// an address with a symbol leaves its bits 0 and reports a Relocation.
struct Address {
  static constexpr uint32_t kAbsolute = 0xffffffff;
  uint32_t symbol = kAbsolute;
  uint64_t offset = 0;
  bool operator==(const Address&) const = default;
};
// The address of bytes that only the device reads (weights, tables, commands): two of them are compared by content, not
// by address.
struct Blob : Address {};

enum class ValueKind : uint8_t { unsigned_int, signed_int, boolean, float32, enumeration, address, blob };
constexpr bool is_address(ValueKind kind) { return kind == ValueKind::address || kind == ValueKind::blob; }

struct EnumName {
  uint64_t value;
  const char* name;
};
// The values of an enum and their names; empty for an enum that bits/declare_enums.h did not make.
struct EnumNames {
  const char* type = nullptr;
  std::span<const EnumName> values;

  const char* find(uint64_t value) const;  // null: no such value
};

template <typename T>
constexpr EnumNames names_of() {
  if constexpr (requires { enum_names(T{}); })
    return enum_names(T{});
  else
    return {};
}

template <typename T>
constexpr ValueKind value_kind() {
  if constexpr (std::is_same_v<T, Blob>)
    return ValueKind::blob;
  else if constexpr (std::is_same_v<T, Address>)
    return ValueKind::address;
  else if constexpr (std::is_same_v<T, bool>)
    return ValueKind::boolean;
  else if constexpr (std::is_same_v<T, float>)
    return ValueKind::float32;
  else if constexpr (requires { enum_names(T{}); })
    return ValueKind::enumeration;
  else if constexpr (std::is_enum_v<T>)
    return ValueKind::unsigned_int;
  else if constexpr (std::is_signed_v<T>)
    return ValueKind::signed_int;
  else
    return ValueKind::unsigned_int;
}

struct Row {
  const char* name;
  ValueKind kind;
  Codec codec;
  Where where;
  Evidence evidence;
  const char* doc;
  EnumNames names;
  uint16_t member_offset;  // of the struct's member, in bytes
  uint8_t member_size;
};
template <typename T>
constexpr Row make_row(const char* name, size_t member_offset, Codec codec, Where where, Evidence evidence,
                       const char* doc) {
  return {name,
          value_kind<T>(),
          codec,
          where,
          evidence,
          doc,
          names_of<T>(),
          static_cast<uint16_t>(member_offset),
          static_cast<uint8_t>(sizeof(T))};
}

// A member's value, type-erased: integers sign- or zero-extended, floats as their bits, addresses as offset + symbol.
struct Value {
  uint64_t integer = 0;
  uint32_t symbol = Address::kAbsolute;
};

struct Descriptor {
  const char* name;
  int words;
  std::span<const Row> rows;
  uint32_t address = 0;  // of a register in its set
};

// Registers of one word each, found by address without a search.
class RegisterSet {
 public:
  explicit RegisterSet(std::span<const Descriptor> all);  // ascending addresses; borrowed

  const Descriptor* find(uint32_t address) const {  // null: no such register
    const size_t slot = address >> shift_;
    const size_t next = slot < after_.size() ? after_[slot] : 0;
    return next != 0 && registers[next - 1].address == address ? &registers[next - 1] : nullptr;
  }
  size_t index(const Descriptor& descriptor) const { return static_cast<size_t>(&descriptor - registers.data()); }
  // Bits that are in no row.
  uint32_t unclaimed(const Descriptor& descriptor) const { return facts_[index(descriptor)].unclaimed; }
  bool holds_address(const Descriptor& descriptor) const { return facts_[index(descriptor)].holds_address; }

  std::span<const Descriptor> registers;

 private:
  struct Facts {
    uint32_t unclaimed;
    bool holds_address;
  };
  int shift_ = 0;                // low bits that are 0 in each address
  std::vector<uint16_t> after_;  // by address: index + 1; 0: no register
  std::vector<Facts> facts_;     // by index
};

// A place for an address that is not known yet: a row of one piece, raw or aligned.
struct AddressSlot {
  const Row* row = nullptr;
  Address address;
};

// Writes `values` (one per row) into `words`, which are overwritten. If a value does not fit, the error names
// descriptor, field, value and limit. Addresses with a symbol are added to `slots`. Allocates only what `slots` needs.
Result<void> pack(const Descriptor& descriptor, std::span<const Value> values, std::span<uint32_t> words,
                  std::vector<AddressSlot>* slots);
// The same from the members of the descriptor's struct.
Result<void> pack_struct(const Descriptor& descriptor, const void* fields, std::span<uint32_t> words,
                         std::vector<AddressSlot>* slots);
// Sets the members of the descriptor's struct; allocates nothing. Ignores bits without a row.
void read_struct(const Descriptor& descriptor, std::span<const uint32_t> words, void* fields);
// One row's value in `words`.
Value read_field(const Row& row, std::span<const uint32_t> words);
// The bits of a word that are in no row.
uint32_t unclaimed_bits(const Descriptor& descriptor, int word, uint32_t value);

// Reads every row; bits without a row are kept in `unclaimed` (one word per descriptor word).
struct Unpacked {
  std::vector<Value> values;
  std::vector<uint32_t> unclaimed;
  bool has_unclaimed() const;
};
Unpacked unpack(const Descriptor& descriptor, std::span<const uint32_t> words);
// Inverse of unpack(): the words, unclaimed bits included.
Result<std::vector<uint32_t>> repack(const Descriptor& descriptor, const Unpacked& unpacked);

// One field as text: decimal, signed, true/false, an enum's name, hex for addresses.
std::string print_value(const Row& row, const Value& value);
// All fields that are not 0, one "name = value" per line, then the bits without a row.
std::string print(const Descriptor& descriptor, const Unpacked& unpacked, std::string_view indent = "  ");
// A C++ designated initialiser with these values.
std::string as_source(const Descriptor& descriptor, const Unpacked& unpacked);

struct Difference {
  std::string field;  // row name, or "unclaimed word 3"
  std::string a, b;
};
std::vector<Difference> diff(const Descriptor& descriptor, std::span<const uint32_t> a, std::span<const uint32_t> b);

// ---- compile-time checks, used by define.h and define_set.h ----

// Row rules, checked at compile time: pieces inside their word, words inside the descriptor, no two rows overlap.
template <size_t N>
constexpr bool rows_inside(const Row (&rows)[N], int words) {
  for (const Row& row : rows) {
    if (row.where.count == 0 || row.where.width() > 64) return false;
    for (uint8_t i = 0; i < row.where.count; ++i) {
      const Piece piece = row.where.pieces[i];
      if (piece.word >= words || piece.width == 0 || piece.lsb + piece.width > 32) return false;
    }
  }
  return true;
}
constexpr uint32_t piece_mask(Piece piece) {
  const uint64_t ones = (uint64_t{1} << piece.width) - 1;
  return static_cast<uint32_t>(ones << piece.lsb);
}
template <size_t N>
constexpr bool rows_disjoint(const Row (&rows)[N]) {
  std::array<uint32_t, 256> taken{};
  for (const Row& row : rows) {
    for (uint8_t i = 0; i < row.where.count; ++i) {
      const Piece piece = row.where.pieces[i];
      if (taken[piece.word] & piece_mask(piece)) return false;
      taken[piece.word] |= piece_mask(piece);
    }
  }
  return true;
}

template <size_t N>
constexpr bool addresses_ascend(const Descriptor (&registers)[N]) {
  for (size_t i = 1; i < N; ++i) {
    if (registers[i].address <= registers[i - 1].address) return false;
  }
  return true;
}

// ---- typed structs ----

template <typename T>
const Descriptor& descriptor_of() {
  return T::descriptor();
}

template <typename T>
using Words = std::array<uint32_t, static_cast<size_t>(T::kWords)>;

template <typename T>
Result<Words<T>> pack(const T& fields, std::vector<AddressSlot>* slots = nullptr) {
  Words<T> words{};
  SK_TRY(pack_struct(T::descriptor(), &fields, words, slots));
  return words;
}

// Only the members, without allocating.
template <typename T>
T read(std::span<const uint32_t> words) {
  T fields;
  read_struct(T::descriptor(), words, &fields);
  return fields;
}

template <typename T>
struct Typed {
  T fields;
  Unpacked raw;
};
template <typename T>
Typed<T> unpack(std::span<const uint32_t> words) {
  return {read<T>(words), unpack(T::descriptor(), words)};
}

}  // namespace skillet::bits
