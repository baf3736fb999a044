#include "vendor_variants.h"

#include <algorithm>
#include <map>

namespace skillet::golden {
namespace {

using nlohmann::json;
using Registers = std::map<uint16_t, uint32_t>;

constexpr uint64_t kValueAt = 16;
constexpr uint32_t kHighBit = 1U << 31, kPlaceBits = 0x3FFF;

// Sets these registers in all programs.
void set(Bytes& program, const Registers& values) {
  for (size_t at = 0; at + kWordBytes <= program.size(); at += kWordBytes) {
    const auto word = load_le<uint64_t>(program.data() + at);
    const auto found = values.find(static_cast<uint16_t>(word));
    if (word >> 48 == 0 || found == values.end()) continue;
    store_le(program.data() + at, word >> 48 << 48 | uint64_t{found->second} << kValueAt | found->first);
  }
}

// Registers for rows `first` to `first + count` of a window's outputs (section 5 of the specification of the RK3576).
Registers part_of(Registers words, uint32_t first, uint32_t count) {
  constexpr uint32_t kLow = 0xFFFF, kAtom = 16, kBankUnits = 1024, kStrideBits = 7;
  const uint32_t stride = words[0x1014] >> 3 & kStrideBits, kernel = (words[0x1024] >> 24) + 1;
  const uint32_t width = (words[0x102C] >> 16) + 1, out_width = (words[0x301C] & kLow) + 1;
  const uint32_t in_rows = (words[0x102C] & kLow) + 1, out_rows = (words[0x301C] >> 16) + 1;
  const uint32_t begin = first * stride, rows = std::min((count - 1) * stride + kernel, in_rows - begin);
  const uint32_t kept_before = in_rows - (words[0x1078] & kLow) - 1;
  const uint32_t kept = first == 0 ? kept_before : kernel - stride, fetched = rows - kept;
  const uint32_t units = words[0x103C] >> 16, banks = words[0x1018] >> 8 & 0xFF, end = words[0x1018] & 0xFF;
  const uint32_t ring = (end - banks) * kBankUnits;
  const auto unit_of = [&](uint32_t row) {
    return ring + ((words[0x103C] & kPlaceBits) - ring + row * units) % (banks * kBankUnits);
  };
  const uint32_t place = unit_of(begin), fetch = unit_of(begin + kept);
  words[0x1088] += kAtom * width * (begin + kept - kept_before), words[0x4018] += kAtom * out_width * first;
  words[0x1028] = units * fetched << 16 | (words[0x1028] & kLow);
  words[0x102C] = (width - 1) << 16 | (rows - 1), words[0x1078] = (width - 1) << 16 | (fetched - 1);
  words[0x103C] = units << 16 | place, words[0x1040] = (words[0x1040] & ~kPlaceBits) | fetch;
  words[0x1034] = out_width * count - 1, words[0x1098] = (width * fetched + 3) / 4 * 4;
  if (first + count < out_rows) words[0x1080] &= 0xFF00FFFF;
  words[0x301C] = words[0x4034] = (count - 1) << 16 | (out_width - 1), words[0x4024] = words[0x5010] = count - 1;
  words[0x40B8] += out_width * (out_rows - count);
  return words;
}

// Appends a program for these rows, and returns its record.
json add_part(VendorCase& c, const json& task, uint32_t first, uint32_t count) {
  constexpr size_t kAlignment = 64;
  Registers words;
  for (const Word& one : c.words(task)) words[one.address] = one.value;
  const Registers own = part_of(std::move(words), first, count);
  Bytes part(c.program.begin() + task.at("offset").get<std::ptrdiff_t>(), c.program.end());
  part.resize(task.at("words").get<size_t>() * kWordBytes);
  set(part, own);
  json record = task;
  c.program.resize((c.program.size() + kAlignment - 1) / kAlignment * kAlignment);
  record["offset"] = c.program.size();
  record["cbuf_base"] = own.at(0x103C) & kPlaceBits;
  c.program.insert(c.program.end(), part.begin(), part.end());
  return record;
}

}  // namespace

VendorCase with_one_more_bit(VendorCase c) {
  c.j["shift_word"] = "0xf0f";
  return c;
}

VendorCase with_halves(VendorCase c) {
  constexpr uint32_t kOne = 16384, kOneShift = 14;
  c = with_one_more_bit(std::move(c));
  c.j[kSmallSums] = true;
  set(c.program, {{0x40AC, 0}, {0x40B0, kOne}, {0x40B4, kOneShift}});
  return c;
}

VendorCase with_three_windows(VendorCase c) {
  json tasks = json::array();
  for (const json& task : json(c.j.at("tasks"))) {
    const uint32_t rows = (value_of(c.words(task), 0x301C) >> 16) + 1, upper = rows / 2;
    if ((value_of(c.words(task), 0x1018) & kHighBit) == 0 || upper == 0) {
      tasks.push_back(task);
      continue;
    }
    tasks.push_back(add_part(c, task, 0, upper));
    tasks.push_back(add_part(c, task, upper, rows - upper));
  }
  c.j["tasks"] = std::move(tasks);
  return c;
}

std::span<const Variant> variants() {
  static constexpr Variant kVariants[] = {{"lut/ctl_conv_i8", ".halves", with_halves},
                                          {"lut/conv_relu6_i8", ".limit", with_one_more_bit},
                                          {"found/dw", ".windows", with_three_windows}};
  return kVariants;
}

}  // namespace skillet::golden
