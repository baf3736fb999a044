#include "bits/bits.h"

#include <fmt/format.h>

namespace skillet::bits {
namespace {

constexpr uint64_t low_bits(int width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

Error refuse(const Descriptor& d, const Row& row, const Value& value, std::string_view limit) {
  return error(ErrorCode::out_of_range, "{}.{} = {}: {}", d.name, row.name, print_value(row, value), limit);
}

// Value -> the integer that goes into the bits, before the width check.
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

// What a relocation can put in later: one run of bits, all of the address but low bits that are 0.
Result<void> check_relocatable(const Descriptor& d, const Row& row) {
  const bool plain = row.codec.kind == CodecKind::raw || row.codec.kind == CodecKind::aligned;
  if (row.where.count == 1 && plain) return {};
  return error(ErrorCode::internal, "{}.{}: a symbolic address in {} pieces{} cannot be relocated", d.name, row.name,
               row.where.count, plain ? "" : " with a codec");
}

}  // namespace

Result<void> pack(const Descriptor& descriptor, std::span<const Value> values, std::span<uint32_t> words,
                  std::vector<AddressSlot>* slots) {
  if (values.size() != descriptor.rows.size() || words.size() < static_cast<size_t>(descriptor.words))
    return error(ErrorCode::internal, "{}: pack with {} values into {} words", descriptor.name, values.size(),
                 words.size());
  std::fill(words.begin(), words.end(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const Row& row = descriptor.rows[i];
    if (row.kind == ValueKind::address && values[i].symbol != Address::kAbsolute) {
      if (slots == nullptr) return refuse(descriptor, row, values[i], "a symbolic address needs a place to be noted");
      SK_TRY(check_relocatable(descriptor, row));
      slots->push_back({&row, {values[i].symbol, values[i].integer}});
      continue;
    }
    SK_TRY_ASSIGN(uint64_t field, checked_field(descriptor, row, values[i]));
    for (uint8_t p = 0; p < row.where.count; ++p) {
      const Piece piece = row.where.pieces[p];
      words[piece.word] |= static_cast<uint32_t>((field & low_bits(piece.width)) << piece.lsb);
      field >>= piece.width;
    }
  }
  return {};
}

bool Unpacked::has_unclaimed() const {
  for (uint32_t word : unclaimed) {
    if (word != 0) return true;
  }
  return false;
}

Unpacked unpack(const Descriptor& descriptor, std::span<const uint32_t> words) {
  Unpacked out;
  out.unclaimed.assign(static_cast<size_t>(descriptor.words), 0);
  for (size_t i = 0; i < out.unclaimed.size() && i < words.size(); ++i) out.unclaimed[i] = words[i];
  const std::vector<uint32_t> all = out.unclaimed;
  out.values.reserve(descriptor.rows.size());
  for (const Row& row : descriptor.rows) {
    uint64_t field = 0;
    int shift = 0;
    for (uint8_t p = 0; p < row.where.count; ++p) {
      const Piece piece = row.where.pieces[p];
      field |= static_cast<uint64_t>((all[piece.word] & piece_mask(piece)) >> piece.lsb) << shift;
      shift += piece.width;
      out.unclaimed[piece.word] &= ~piece_mask(piece);
    }
    if (row.kind == ValueKind::signed_int) field = sign_extend(field, row.where.width());
    out.values.push_back({decode(row, field)});
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
    case ValueKind::address:
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

std::string as_source(const Descriptor& descriptor, const Unpacked& unpacked) {
  std::string text = fmt::format("{}{{\n", descriptor.name);
  for (size_t i = 0; i < descriptor.rows.size(); ++i) {
    const Row& row = descriptor.rows[i];
    if (unpacked.values[i].integer == 0 || row.codec.kind == CodecKind::always) continue;
    const std::string value = print_value(row, unpacked.values[i]);
    const bool address = row.kind == ValueKind::address;
    text += fmt::format("    .{} = {},\n", row.name, address ? fmt::format("{{.offset = {}}}", value) : value);
  }
  for (size_t w = 0; w < unpacked.unclaimed.size(); ++w) {
    if (unpacked.unclaimed[w] != 0)
      text += fmt::format("    // unclaimed word {}: 0x{:08x}\n", w, unpacked.unclaimed[w]);
  }
  return text + "}\n";
}

std::string as_markdown(const Descriptor& descriptor) {
  static constexpr const char* kEvidence[] = {"documented", "confirmed", "inferred", "guessed"};
  std::string text =
      fmt::format("### {} ({} words)\n\n| field | bits | evidence | meaning |\n| --- | --- | --- | --- |\n",
                  descriptor.name, descriptor.words);
  for (const Row& row : descriptor.rows) {
    std::string where;
    for (uint8_t p = 0; p < row.where.count; ++p) {
      const Piece piece = row.where.pieces[p];
      where += fmt::format("{}w{}[{}:{}]", p == 0 ? "" : " + ", piece.word, piece.lsb + piece.width - 1, piece.lsb);
    }
    text +=
        fmt::format("| {} | {} | {} | {} |\n", row.name, where, kEvidence[static_cast<size_t>(row.evidence)], row.doc);
  }
  return text;
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
