// The descriptor engine: a hardware bit position is written in one row; packing, unpacking, printing, diffing,
// the docs table and the simulators' decoders all come from that row.
// Called by drivers/<v>/hw (rows), encoders (pack), simulators and tools (unpack, print, diff).
// Must not know: any chip.
//
// A descriptor type lists its rows in a .def file, one FIELD line per field:
//   FIELD(kernel_depth, uint32_t, raw, at(0, 6, 14) + at(5, 26, 6), confirmed, "input channels")
// bits/declare.h makes the struct from it, bits/define.h the table and the conversions.
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
constexpr Codec always(uint64_t v) { return {CodecKind::always, v}; }    // this constant, whatever the member says

enum class Evidence : uint8_t {
  documented,  // a manual says so
  confirmed,   // varied in captures of a driver known to work on silicon
  inferred,
  guessed,
};

// A device address: absolute when symbol == kAbsolute, else relative to a buffer whose place is not known yet.
// Packing an address with a symbol leaves its bits 0 and reports a Relocation.
struct Address {
  static constexpr uint32_t kAbsolute = 0xffffffff;
  uint32_t symbol = kAbsolute;
  uint64_t offset = 0;
  bool operator==(const Address&) const = default;
};

enum class ValueKind : uint8_t { unsigned_int, signed_int, boolean, float32, address };

template <typename T>
constexpr ValueKind value_kind() {
  if constexpr (std::is_same_v<T, Address>)
    return ValueKind::address;
  else if constexpr (std::is_same_v<T, bool>)
    return ValueKind::boolean;
  else if constexpr (std::is_same_v<T, float>)
    return ValueKind::float32;
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
};

// A member's value, type-erased: integers sign- or zero-extended, floats as their bits, addresses as offset + symbol.
struct Value {
  uint64_t integer = 0;
  uint32_t symbol = Address::kAbsolute;
};

struct Descriptor {
  const char* name;
  int words;
  std::span<const Row> rows;
};

// Where an address that is not known yet has to go: a row of one piece, raw or aligned.
struct AddressSlot {
  const Row* row = nullptr;
  Address address;
};

// Writes `values` (one per row) into `words`, which are overwritten. Error naming descriptor, field, value and limit
// when a value does not fit. Addresses with a symbol go to `slots`.
Result<void> pack(const Descriptor& descriptor, std::span<const Value> values, std::span<uint32_t> words,
                  std::vector<AddressSlot>* slots);
// Reads every row; bits that no row claims stay in `unclaimed` (one word per descriptor word).
struct Unpacked {
  std::vector<Value> values;
  std::vector<uint32_t> unclaimed;
  bool has_unclaimed() const;
};
Unpacked unpack(const Descriptor& descriptor, std::span<const uint32_t> words);
// Inverse of unpack(): the words, unclaimed bits included.
Result<std::vector<uint32_t>> repack(const Descriptor& descriptor, const Unpacked& unpacked);

// One field as text: decimal, signed, true/false, hex for addresses.
std::string print_value(const Row& row, const Value& value);
// All fields that are not 0, one "name = value" per line, then the unclaimed bits.
std::string print(const Descriptor& descriptor, const Unpacked& unpacked, std::string_view indent = "  ");
// C++ designated initialiser that gives these values.
std::string as_source(const Descriptor& descriptor, const Unpacked& unpacked);
// Markdown table of the rows.
std::string as_markdown(const Descriptor& descriptor);

struct Difference {
  std::string field;  // row name, or "unclaimed word 3"
  std::string a, b;
};
std::vector<Difference> diff(const Descriptor& descriptor, std::span<const uint32_t> a, std::span<const uint32_t> b);

// ---- compile-time checks, used by SK_BITS_DESCRIPTOR ----

// Row rules, checked at compile time: pieces inside their word, words inside the descriptor, no two rows overlap.
template <size_t N>
constexpr bool rows_inside(const std::array<Row, N>& rows, int words) {
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
constexpr bool rows_disjoint(const std::array<Row, N>& rows) {
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

// ---- typed structs ----

template <typename T>
constexpr Value to_value(const T& member) {
  if constexpr (std::is_same_v<T, Address>)
    return {member.offset, member.symbol};
  else if constexpr (std::is_same_v<T, float>)
    return {std::bit_cast<uint32_t>(member)};
  else if constexpr (std::is_signed_v<T>)
    return {static_cast<uint64_t>(static_cast<int64_t>(member))};
  else
    return {static_cast<uint64_t>(member)};
}
template <typename T>
constexpr void from_value(const Value& value, T& member) {
  if constexpr (std::is_same_v<T, Address>)
    member = {value.symbol, value.integer};
  else if constexpr (std::is_same_v<T, float>)
    member = std::bit_cast<float>(static_cast<uint32_t>(value.integer));
  else
    member = static_cast<T>(value.integer);
}

// Specialised by bits/define.h for each struct.
template <typename T>
const Descriptor& descriptor_of();
template <typename T>
std::vector<Value> to_values(const T& fields);
template <typename T>
void from_values(std::span<const Value> values, T& fields);

template <typename T>
Result<std::vector<uint32_t>> pack(const T& fields, std::vector<AddressSlot>* slots = nullptr) {
  std::vector<uint32_t> words(static_cast<size_t>(descriptor_of<T>().words));
  SK_TRY(pack(descriptor_of<T>(), to_values(fields), words, slots));
  return words;
}

template <typename T>
struct Typed {
  T fields;
  Unpacked raw;
};
template <typename T>
Typed<T> unpack(std::span<const uint32_t> words) {
  Typed<T> typed{{}, unpack(descriptor_of<T>(), words)};
  from_values(std::span<const Value>(typed.raw.values), typed.fields);
  return typed;
}

}  // namespace skillet::bits
