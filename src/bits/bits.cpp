#include "bits/bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace skillet::bits {
namespace {

constexpr uint64_t low_bits(int width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

Error refuse(const Descriptor& d, const Row& row, const Value& value, std::string_view limit) {
  return error(ErrorCode::out_of_range, "{}.{} = {}: {}", d.name, row.name, print_value(row, value), limit);
}

// Converts a value to the integer that is stored in the bits, before the width check.
Result<uint64_t> encode(const Descriptor& d, const Row& row, const Value& value) {
  switch (row.codec.kind) {
    case CodecKind::raw: return value.integer;
    case CodecKind::always: return row.codec.argument;
    case CodecKind::aligned:
      if (value.integer & low_bits(static_cast<int>(row.codec.argument)))
        return refuse(d, row, value, fmt::format("must be a multiple of {}", uint64_t{1} << row.codec.argument));
      return value.integer >> row.codec.argument;
    case CodecKind::minus_one:
      if (value.integer == 0) return refuse(d, row, value, "must be at least 1");
      return value.integer - 1;
    case CodecKind::log2_of:
      if (!std::has_single_bit(value.integer)) return refuse(d, row, value, "must be a power of two");
      return static_cast<uint64_t>(std::countr_zero(value.integer));
  }
  return error(ErrorCode::internal, "{}.{}: unknown codec", d.name, row.name);
}

uint64_t decode(const Row& row, uint64_t field) {
  switch (row.codec.kind) {
    case CodecKind::raw:
    case CodecKind::always: return field;
    case CodecKind::aligned: return field << row.codec.argument;
    case CodecKind::minus_one: return field + 1;
    case CodecKind::log2_of: return uint64_t{1} << (field & 63);
  }
  return field;
}

Result<uint64_t> checked_field(const Descriptor& d, const Row& row, const Value& value) {
  SK_TRY_ASSIGN(const uint64_t field, encode(d, row, value));
  const int width = row.where.width();
  if (row.kind == ValueKind::signed_int && row.codec.kind == CodecKind::raw) {
    const auto v = static_cast<int64_t>(field);
    const int64_t limit = width >= 64 ? INT64_MAX : (int64_t{1} << (width - 1)) - 1;
    if (v > limit || v < -limit - 1) return refuse(d, row, value, fmt::format("allowed {} to {}", -limit - 1, limit));
    return field & low_bits(width);
  }
  if (field & ~low_bits(width))
    return refuse(d, row, value, fmt::format("at most {} in {} bits", decode(row, low_bits(width)), width));
  return field;
}

uint64_t sign_extend(uint64_t field, int width) {
  if (width >= 64 || !(field >> (width - 1) & 1)) return field;
  return field | ~low_bits(width);
}

// Checks that a relocation can fill the row in later: one run of bits that holds the whole address except low zero
// bits.
Result<void> check_relocatable(const Descriptor& d, const Row& row) {
  const bool plain = row.codec.kind == CodecKind::raw || row.codec.kind == CodecKind::aligned;
  if (row.where.count == 1 && plain) return {};
  return error(ErrorCode::internal, "{}.{}: a symbolic address in {} pieces{} cannot be relocated", d.name, row.name,
               row.where.count, plain ? "" : " with a codec");
}

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint64_t load_unsigned(const void* from, int size) {
  switch (size) {
    case 1: return load<uint8_t>(from);
    case 2: return load<uint16_t>(from);
    case 4: return load<uint32_t>(from);
    default: return load<uint64_t>(from);
  }
}

void store_unsigned(uint64_t value, void* to, int size) {
  const auto put = [to](auto narrow) { std::memcpy(to, &narrow, sizeof narrow); };
  switch (size) {
    case 1: return put(static_cast<uint8_t>(value));
    case 2: return put(static_cast<uint16_t>(value));
    case 4: return put(static_cast<uint32_t>(value));
    default: return put(value);
  }
}

Value load_member(const Row& row, const void* fields) {
  const void* member = static_cast<const uint8_t*>(fields) + row.member_offset;
  if (is_address(row.kind)) {
    const auto address = load<Address>(member);
    return {address.offset, address.symbol};
  }
  const uint64_t bits = load_unsigned(member, row.member_size);
  return {row.kind == ValueKind::signed_int ? sign_extend(bits, row.member_size * 8) : bits};
}

void store_member(const Row& row, const Value& value, void* fields) {
  void* member = static_cast<uint8_t*>(fields) + row.member_offset;
  if (is_address(row.kind)) {
    const Address address{value.symbol, value.integer};
    std::memcpy(member, &address, sizeof address);
  } else {
    store_unsigned(row.kind == ValueKind::boolean ? value.integer != 0 : value.integer, member, row.member_size);
  }
}

Result<void> pack_row(const Descriptor& d, const Row& row, const Value& value, std::span<uint32_t> words,
                      std::vector<AddressSlot>* slots) {
  if (is_address(row.kind) && value.symbol != Address::kAbsolute) {
    if (slots == nullptr) return refuse(d, row, value, "a symbolic address needs a place to be noted");
    SK_TRY(check_relocatable(d, row));
    slots->push_back({&row, {value.symbol, value.integer}});
    return {};
  }
  SK_TRY_ASSIGN(uint64_t field, checked_field(d, row, value));
  for (uint8_t p = 0; p < row.where.count; ++p) {
    const Piece piece = row.where.pieces[p];
    words[piece.word] |= static_cast<uint32_t>((field & low_bits(piece.width)) << piece.lsb);
    field >>= piece.width;
  }
  return {};
}

}  // namespace

const char* EnumNames::find(uint64_t value) const {
  for (const EnumName& entry : values) {
    if (entry.value == value) return entry.name;
  }
  return nullptr;
}

RegisterSet::RegisterSet(std::span<const Descriptor> all) : registers(all) {
  uint32_t bits = 1U << 31;
  for (const Descriptor& one : registers) bits |= one.address;
  shift_ = std::countr_zero(bits);
  for (const Descriptor& one : registers) {
    after_.resize((one.address >> shift_) + 1);
    after_.back() = static_cast<uint16_t>(index(one) + 1);
    facts_.push_back({unclaimed_bits(one, 0, UINT32_MAX),
                      std::ranges::any_of(one.rows, [](const Row& row) { return is_address(row.kind); })});
  }
}

Result<void> pack(const Descriptor& descriptor, std::span<const Value> values, std::span<uint32_t> words,
                  std::vector<AddressSlot>* slots) {
  if (values.size() != descriptor.rows.size() || words.size() < static_cast<size_t>(descriptor.words))
    return error(ErrorCode::internal, "{}: pack with {} values into {} words", descriptor.name, values.size(),
                 words.size());
  std::fill(words.begin(), words.end(), 0);
  for (size_t i = 0; i < values.size(); ++i) SK_TRY(pack_row(descriptor, descriptor.rows[i], values[i], words, slots));
  return {};
}

Result<void> pack_struct(const Descriptor& descriptor, const void* fields, std::span<uint32_t> words,
                         std::vector<AddressSlot>* slots) {
  for (const Row& row : descriptor.rows) SK_TRY(pack_row(descriptor, row, load_member(row, fields), words, slots));
  return {};
}

Value read_field(const Row& row, std::span<const uint32_t> words) {
  uint64_t field = 0;
  int shift = 0;
  for (uint8_t p = 0; p < row.where.count; ++p) {
    const Piece piece = row.where.pieces[p];
    const uint32_t word = piece.word < words.size() ? words[piece.word] : 0;
    field |= static_cast<uint64_t>((word & piece_mask(piece)) >> piece.lsb) << shift;
    shift += piece.width;
  }
  if (row.kind == ValueKind::signed_int) field = sign_extend(field, row.where.width());
  return {decode(row, field)};
}

void read_struct(const Descriptor& descriptor, std::span<const uint32_t> words, void* fields) {
  for (const Row& row : descriptor.rows) store_member(row, read_field(row, words), fields);
}

uint32_t unclaimed_bits(const Descriptor& descriptor, int word, uint32_t value) {
  for (const Row& row : descriptor.rows) {
    for (uint8_t p = 0; p < row.where.count; ++p) {
      if (row.where.pieces[p].word == word) value &= ~piece_mask(row.where.pieces[p]);
    }
  }
  return value;
}

bool Unpacked::has_unclaimed() const {
  for (uint32_t word : unclaimed) {
    if (word != 0) return true;
  }
  return false;
}

Unpacked unpack(const Descriptor& descriptor, std::span<const uint32_t> words) {
  Unpacked out;
  out.values.reserve(descriptor.rows.size());
  for (const Row& row : descriptor.rows) out.values.push_back(read_field(row, words));
  const auto count = static_cast<size_t>(descriptor.words);
  const auto known = words.first(std::min(words.size(), count));
  out.unclaimed.assign(known.begin(), known.end());
  out.unclaimed.resize(count);
  for (const Row& row : descriptor.rows) {
    for (uint8_t p = 0; p < row.where.count; ++p)
      out.unclaimed[row.where.pieces[p].word] &= ~piece_mask(row.where.pieces[p]);
  }
  return out;
}

Result<std::vector<uint32_t>> repack(const Descriptor& descriptor, const Unpacked& unpacked) {
  std::vector<uint32_t> words(static_cast<size_t>(descriptor.words));
  SK_TRY(pack(descriptor, unpacked.values, words, nullptr));
  for (size_t i = 0; i < words.size(); ++i) words[i] |= unpacked.unclaimed[i];
  return words;
}

std::string print_value(const Row& row, const Value& value) {
  switch (row.kind) {
    case ValueKind::unsigned_int:
      return value.integer > 0xffffff ? fmt::format("0x{:x}", value.integer) : fmt::format("{}", value.integer);
    case ValueKind::signed_int: return fmt::format("{}", static_cast<int64_t>(value.integer));
    case ValueKind::boolean:
      return value.integer > 1 ? fmt::format("{}", value.integer) : value.integer ? "true" : "false";
    case ValueKind::float32: return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(value.integer)));
    case ValueKind::enumeration: {
      const char* const name = row.names.find(value.integer);
      return name != nullptr ? name : fmt::format("{}", value.integer);
    }
    case ValueKind::address:
    case ValueKind::blob:
      if (value.symbol == Address::kAbsolute) return fmt::format("0x{:08x}", value.integer);
      return fmt::format("buffer {} + {}", value.symbol, value.integer);
  }
  return "?";
}

std::string print(const Descriptor& descriptor, const Unpacked& unpacked, std::string_view indent) {
  std::string text;
  for (size_t i = 0; i < descriptor.rows.size(); ++i) {
    const Value& value = unpacked.values[i];
    if (value.integer == 0 && value.symbol == Address::kAbsolute) continue;
    text += fmt::format("{}{} = {}\n", indent, descriptor.rows[i].name, print_value(descriptor.rows[i], value));
  }
  for (size_t w = 0; w < unpacked.unclaimed.size(); ++w) {
    if (unpacked.unclaimed[w] != 0)
      text += fmt::format("{}unclaimed word {} = 0x{:08x}\n", indent, w, unpacked.unclaimed[w]);
  }
  return text;
}

namespace {

std::string source_value(const Row& row, const Value& value) {
  const std::string text = print_value(row, value);
  if (row.kind == ValueKind::address) return fmt::format("{{.offset = {}}}", text);
  if (row.kind == ValueKind::blob) return fmt::format("{{{{.offset = {}}}}}", text);
  const auto bits = static_cast<uint32_t>(value.integer);
  if (row.kind == ValueKind::float32 && !std::isfinite(std::bit_cast<float>(bits)))
    return fmt::format("std::bit_cast<float>(0x{:08x}U)", bits);  // `inf` and `nan` are not valid C++
  if (row.kind != ValueKind::enumeration) return text;
  if (row.names.find(value.integer) == nullptr) return fmt::format("{}({})", row.names.type, text);
  return fmt::format("{}::{}", row.names.type, text);
}

}  // namespace

std::string as_source(const Descriptor& descriptor, const Unpacked& unpacked) {
  std::string text = fmt::format("{}{{\n", descriptor.name);
  for (size_t i = 0; i < descriptor.rows.size(); ++i) {
    const Row& row = descriptor.rows[i];
    if (unpacked.values[i].integer == 0 || row.codec.kind == CodecKind::always) continue;
    text += fmt::format("    .{} = {},\n", row.name, source_value(row, unpacked.values[i]));
  }
  for (size_t w = 0; w < unpacked.unclaimed.size(); ++w) {
    if (unpacked.unclaimed[w] != 0)
      text += fmt::format("    // unclaimed word {}: 0x{:08x}\n", w, unpacked.unclaimed[w]);
  }
  return text + "}\n";
}

std::vector<Difference> diff(const Descriptor& descriptor, std::span<const uint32_t> a, std::span<const uint32_t> b) {
  const Unpacked left = unpack(descriptor, a);
  const Unpacked right = unpack(descriptor, b);
  std::vector<Difference> differences;
  for (size_t i = 0; i < descriptor.rows.size(); ++i) {
    if (left.values[i].integer == right.values[i].integer) continue;
    const Row& row = descriptor.rows[i];
    differences.push_back({row.name, print_value(row, left.values[i]), print_value(row, right.values[i])});
  }
  for (size_t w = 0; w < left.unclaimed.size(); ++w) {
    if (left.unclaimed[w] == right.unclaimed[w]) continue;
    differences.push_back({fmt::format("unclaimed word {}", w), fmt::format("0x{:08x}", left.unclaimed[w]),
                           fmt::format("0x{:08x}", right.unclaimed[w])});
  }
  return differences;
}

}  // namespace skillet::bits
