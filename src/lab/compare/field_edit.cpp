#include "lab/compare/field_edit.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <set>

#include "base/parse_number.h"
#include "base/text.h"
#include "npu/decoded_capture.h"

namespace skillet::npu {
namespace {

// A raw word, for words without a row.
constexpr bits::Row kWord =
    bits::make_row<uint32_t>("value", 0, bits::raw, bits::at(0, 0, 32), bits::Evidence::guessed, "");
int word_count(const AnnotatedField& field) { return field.descriptor == nullptr ? 1 : field.descriptor->words; }

// Fields with a constant value may be changed too.
bits::Row settable(const AnnotatedField& field) {
  bits::Row row = field.row == nullptr ? kWord : *field.row;
  if (row.codec.kind == bits::CodecKind::always) row.codec = bits::raw;
  return row;
}

Result<std::vector<uint8_t>> covering_bytes(const FieldPlace& place, size_t size,
                                            const capture::Submission& submission) {
  std::vector<uint8_t> out(size);
  std::span<const uint8_t> from;
  if (place.in_call) {
    SK_TRY_ASSIGN(const auto words, capture::words_of(submission));
    const auto all = as_bytes(words);
    if (place.address > all.size() || all.size() - place.address < size)
      return error(ErrorCode::out_of_range, "the call has no word at byte {}", place.address);
    from = all.subspan(place.address, size);
  } else {
    const auto at = find_place(submission, place.address);
    if (!at || at->buffer->size_bytes - at->offset < size)
      return error(ErrorCode::out_of_range, "no buffer has {} bytes at {:#x}", size, place.address);
    const std::span<const uint8_t> bytes(at->buffer->bytes);  // without the trailing zeros
    if (at->offset < bytes.size()) from = bytes.subspan(at->offset, std::min(size, bytes.size() - at->offset));
  }
  std::ranges::copy(from, out.begin());
  return out;
}

void put_bytes(const FieldPlace& place, std::span<const uint8_t> bytes, capture::Submission& submission) {
  if (place.in_call) {
    auto* words = reinterpret_cast<uint8_t*>(submission.jobs[0].commands[0].words.data());
    std::ranges::copy(bytes, words + place.address);
    return;
  }
  for (capture::BufferSnapshot& buffer : submission.buffers) {
    if (place.address < buffer.address || place.address - buffer.address >= buffer.size_bytes) continue;
    const uint64_t offset = place.address - buffer.address;
    Bytes contents(buffer.bytes.begin(), buffer.bytes.end());
    contents.resize(std::max<size_t>(contents.size(), offset + bytes.size()));
    std::ranges::copy(bytes, contents.begin() + static_cast<std::ptrdiff_t>(offset));
    capture::set_contents(buffer, contents);
    return;
  }
}

size_t covering_size(const FieldPlace& place, size_t words) { return (place.first_bit + words * 32 + 7) / 8; }

bool bit_at(std::span<const uint8_t> bytes, size_t bit) { return (bytes[bit / 8] >> bit % 8 & 1) != 0; }

std::vector<uint32_t> words_from(std::span<const uint8_t> bytes, size_t first_bit, size_t count) {
  std::vector<uint32_t> out(count);
  for (size_t bit = 0; bit < count * 32; ++bit)
    out[bit / 32] |= static_cast<uint32_t>(bit_at(bytes, first_bit + bit)) << bit % 32;
  return out;
}

void words_into(std::span<const uint32_t> words, size_t first_bit, std::span<uint8_t> bytes) {
  for (size_t bit = 0; bit < words.size() * 32; ++bit) {
    const size_t at = first_bit + bit;
    const auto mask = static_cast<uint8_t>(1U << at % 8);
    bytes[at / 8] = static_cast<uint8_t>((bytes[at / 8] & ~mask) | ((words[bit / 32] >> bit % 32 & 1) != 0 ? mask : 0));
  }
}

std::optional<uint64_t> number_of(std::string_view text) {
  const bool is_negative = text.starts_with("-");
  if (is_negative) text.remove_prefix(1);
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  const auto value = parse_number<uint64_t>(text, is_hex ? 16 : 10);
  return value && is_negative ? ~*value + 1 : value;
}

Result<bits::Value> value_of(const bits::Row& row, std::string_view text) {
  if (row.kind == bits::ValueKind::boolean && (text == "true" || text == "false")) return bits::Value{text == "true"};
  for (const bits::EnumName& one : row.names.values) {
    if (text == one.name) return bits::Value{one.value};
  }
  if (row.kind == bits::ValueKind::float32 && !text.starts_with("0x")) {  // else the text is the number's bits
    const std::string whole(text);
    char* end = nullptr;
    const float value = std::strtof(whole.c_str(), &end);
    if (!whole.empty() && *end == '\0') return bits::Value{std::bit_cast<uint32_t>(value)};
  }
  const std::optional<uint64_t> number = number_of(text);
  if (number) return bits::Value{*number};
  return error(ErrorCode::invalid_argument, "'{}' is no value of {}", text, row.name);
}

// "; in full: 'job 1 nn_instruction.out_zero_point'", for a name that fits several words: a field without its
// descriptor or register ("job 1 out_zero_point"), or one of these without its field ("cna.cbuf_con0").
std::string longer_names(std::string_view path, std::span<const std::string_view> names) {
  constexpr size_t kMost = 3;
  const size_t blank = path.find_last_of(' ');
  const std::string_view begin = blank == std::string_view::npos ? "" : path.substr(0, blank + 1);
  const std::string last(path.substr(begin.size()));
  if (last.empty()) return "";
  std::string out;
  size_t count = 0;
  for (const std::string_view name : names) {
    const size_t at = name.find(last);
    if (at == std::string_view::npos || at == 0 || !name.starts_with(begin)) continue;
    const size_t end = at + last.size();
    const bool is_word = (name[at - 1] == '.' || name[at - 1] == ' ') && (end == name.size() || name[end] == '.');
    if (is_word && count++ < kMost) out += fmt::format("{}'{}'", out.empty() ? "; in full: " : ", ", name);
  }
  return count > kMost ? out + fmt::format(" and {} more", count - kMost) : out;
}

Result<const AnnotatedField*> find_field(const Annotated& decoded, std::string_view path) {
  std::vector<std::string_view> names;
  bool is_there = false;
  for (const AnnotatedField& field : decoded.fields) {
    is_there |= field.path == path;
    if (!field.place) continue;
    if (field.path == path) return &field;
    names.push_back(field.path);
  }
  if (is_there) return error(ErrorCode::invalid_argument, "'{}' is not in the recorded words: it cannot be set", path);
  const std::string longer = longer_names(path, names);
  return error(ErrorCode::invalid_argument, "no field '{}' that can be set{}", path,
               longer.empty() ? did_you_mean(path, names) : longer);
}

// Text that value_of() reads back, bit for bit.
std::string text_of(const bits::Row& row, std::span<const uint32_t> words) {
  const bits::Value value = bits::read_field(row, words);
  std::string text = bits::print_value(row, value);
  const auto read = value_of(row, text);
  return read.ok() && read->integer == value.integer ? text : fmt::format("{:#x}", value.integer);
}

// Writes only the field's own bits; all others stay. A field that already has the value is not written at all.
Result<void> put(const AnnotatedField& field, std::string_view text, capture::Submission& submission) {
  const bits::Row row = settable(field);
  SK_TRY_ASSIGN(const std::vector<uint32_t> words, words_of(field, submission));
  SK_TRY_ASSIGN(const bits::Value value, value_of(row, text));
  if (value.integer == bits::read_field(row, words).integer) return {};
  const bits::Descriptor descriptor{
      field.descriptor == nullptr ? "word" : field.descriptor->name, word_count(field), {&row, 1}, 0};
  bits::Unpacked unpacked = bits::unpack(descriptor, words);
  unpacked.values[0] = value;
  SK_TRY_ASSIGN(const std::vector<uint32_t> changed, bits::repack(descriptor, unpacked));
  const size_t size = covering_size(*field.place, words.size());
  SK_TRY_ASSIGN(auto bytes, covering_bytes(*field.place, size, submission));
  words_into(changed, field.place->first_bit, bytes);
  put_bytes(*field.place, bytes, submission);
  return {};
}

}  // namespace

Result<std::vector<uint32_t>> words_of(const AnnotatedField& field, const capture::Submission& submission) {
  if (!field.place) return error(ErrorCode::invalid_argument, "{} is not part of a word", field.path);
  const auto count = static_cast<size_t>(word_count(field));
  SK_TRY_ASSIGN(const auto bytes, covering_bytes(*field.place, covering_size(*field.place, count), submission));
  return words_from(bytes, field.place->first_bit, count);
}

bool has_field(const Driver& driver, const Chip& chip, const capture::Submission& submission, std::string_view path) {
  const auto decoded = driver.decode(chip, submission);
  return decoded.ok() && find_field(*decoded, path).ok();
}

Result<std::vector<FieldValue>> field_values(const Driver& driver, const Chip& chip,
                                             const capture::Submission& submission) {
  SK_TRY_ASSIGN(const Annotated decoded, driver.decode(chip, submission));
  std::vector<FieldValue> out;
  std::set<std::string_view> paths;
  for (const AnnotatedField& field : decoded.fields) {
    if (!field.place || field.unknown || !paths.insert(field.path).second) continue;
    const auto words = words_of(field, submission);
    if (words.ok()) out.push_back({field.path, text_of(settable(field), *words)});
  }
  return out;
}

Result<void> set_fields(const Driver& driver, const Chip& chip, capture::Submission& submission,
                        std::span<const FieldValue> values, size_t& at) {
  SK_TRY_ASSIGN(const Annotated decoded, driver.decode(chip, submission));
  std::map<std::string_view, const AnnotatedField*> fields;
  for (const AnnotatedField& field : decoded.fields) {
    if (field.place) fields.emplace(field.path, &field);
  }
  for (at = 0; at < values.size(); ++at) {
    const auto found = fields.find(values[at].path);
    SK_TRY_ASSIGN(const AnnotatedField* field, found != fields.end() ? Result<const AnnotatedField*>(found->second)
                                                                     : find_field(decoded, values[at].path));
    SK_TRY(put(*field, values[at].text, submission));
  }
  return {};
}

Result<void> set_field(const Driver& driver, const Chip& chip, capture::Submission& submission, std::string_view path,
                       std::string_view text) {
  size_t at = 0;
  const FieldValue value{std::string(path), std::string(text)};
  return set_fields(driver, chip, submission, {&value, 1}, at);
}

}  // namespace skillet::npu
