#include "tools/jobs/decode_print.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "lab/compare/field_edit.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

using npu::AnnotatedField;
using npu::FieldKind;

// Finds buffers by address, with a binary search: large submissions have many buffers, and even more fields.
class Buffers {
 public:
  explicit Buffers(const capture::Submission& submission) {
    for (const capture::BufferSnapshot& one : submission.buffers)
      if (capture::is_placed(submission, one)) by_address_.push_back(&one);
    std::ranges::sort(by_address_, {}, &capture::BufferSnapshot::address);
  }
  const capture::BufferSnapshot* at(uint64_t address) const {
    const auto behind = std::ranges::upper_bound(by_address_, address, {}, &capture::BufferSnapshot::address);
    if (behind == by_address_.begin()) return nullptr;
    const capture::BufferSnapshot* const one = *std::prev(behind);
    return address - one->address < one->size_bytes ? one : nullptr;
  }

 private:
  std::vector<const capture::BufferSnapshot*> by_address_;
};

// The name of a field; a register with a single field gives its own name.
std::string short_name(const AnnotatedField& field) {
  if (field.row == nullptr) return field.name;
  return std::string_view(field.row->name) == "value" ? field.descriptor->name : field.row->name;
}

// Addresses by operation: "in_address 3+0, out_address 4+4096".
std::vector<std::string> places(const npu::Annotated& decoded, FieldKind kind, const Buffers& buffers) {
  std::vector<std::string> out(decoded.operations.size());
  for (const AnnotatedField& field : decoded.fields) {
    if (field.operation >= out.size() || field.kind != kind || field.unused) continue;
    const capture::BufferSnapshot* const buffer = buffers.at(field.address);
    if (field.address == 0 && buffer == nullptr) continue;
    const std::string place = buffer == nullptr ? fmt::format("{:#x}", field.address)
                                                : fmt::format("{}+{}", buffer->handle, field.address - buffer->address);
    std::string& text = out[field.operation];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_name(field), place);
  }
  return out;
}

std::string contents_text(const capture::BufferSnapshot& buffer) {
  if (buffer.content == capture::Content::zero) return "zeros";
  if (buffer.content == capture::Content::unknown) return buffer.holds_input ? "an input" : "not recorded";
  return fmt::format("{:016x}", XXH64(buffer.bytes.data(), buffer.bytes.size(), 0));
}

std::string listed_text(const capture::BufferSnapshot& buffer) {
  if (!buffer.listed) return "no";
  return buffer.read && buffer.write ? "read, write" : buffer.write ? "write" : buffer.read ? "read" : "yes";
}

// Roles of each buffer for the operations: the names of the fields with its addresses, each once.
using Roles = std::map<const capture::BufferSnapshot*, std::vector<std::string>>;

Roles roles_of(const npu::Annotated& decoded, const capture::Submission& submission) {
  const Buffers buffers(submission);
  Roles roles;
  const auto add = [&](uint64_t address, const std::string& name) {
    std::vector<std::string>& names = roles[buffers.at(address)];
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const capture::Job& job : submission.jobs) {
    for (const capture::Commands& list : job.commands) add(list.address, "commands");
  }
  for (const AnnotatedField& field : decoded.fields) {
    if (field.kind != FieldKind::value && !field.unused)
      add(field.address, field.kind == FieldKind::commands ? "commands" : short_name(field));
  }
  return roles;
}

std::string shape_of(const npu::Annotated& decoded, size_t operation) {
  return operation < decoded.shapes.size() ? decoded.shapes[operation] : "";
}

// Words that contain bits of the field; empty: the field is not read from words.
std::vector<uint32_t> raw_words(const AnnotatedField& field, const capture::Submission& submission) {
  std::vector<uint32_t> out;
  const auto raw = npu::words_of(field, submission);
  for (size_t i = 0; raw.ok() && i < raw->size(); ++i) {
    bool is_part = field.row == nullptr;
    for (uint8_t p = 0; !is_part && p < field.row->where.count; ++p) is_part = field.row->where.pieces[p].word == i;
    if (is_part) out.push_back((*raw)[i]);
  }
  return out;
}

constexpr std::array<std::string_view, 4> kKindNames = {"value", "commands", "constant", "memory"};

nlohmann::json field_json(const AnnotatedField& field, const capture::Submission& submission, const Buffers& buffers) {
  nlohmann::json out = {{"path", field.path},
                        {"name", field.name},
                        {"operation", field.operation},
                        {"value", field.value},
                        {"raw", field.raw},
                        {"unknown", field.unknown},
                        {"kind", kKindNames[static_cast<size_t>(field.kind)]},
                        {"words", raw_words(field, submission)}};
  if (npu::is_inherited(field)) out["inherited"] = true;
  if (field.kind != FieldKind::value) {
    out["address"] = field.address;
    out["unused"] = field.unused;
    const bool is_none = field.unused && field.address == 0;
    if (const auto* const buffer = is_none ? nullptr : buffers.at(field.address); buffer != nullptr)
      out["buffer"] = {{"buffer", buffer->handle}, {"offset", field.address - buffer->address}};
  }
  if (field.row == nullptr) return out;
  out["evidence"] = evidence_name(field.row->evidence);
  out["bits"] = print_bits(*field.row);
  out["what"] = field.row->doc;
  return out;
}

nlohmann::json buffer_json(Roles& roles, const capture::BufferSnapshot& one) {
  return {{"buffer", one.handle},
          {"address", one.address},
          {"bytes", one.size_bytes},
          {"listed", one.listed},
          {"read", one.read},
          {"write", one.write},
          {"contents", contents_text(one)},
          {"what", fmt::format("{}", fmt::join(roles[&one], ", "))}};
}

}  // namespace

std::string_view evidence_name(bits::Evidence evidence) {
  constexpr std::array<std::string_view, 4> kNames = {"documented", "confirmed", "inferred", "guessed"};
  return kNames[static_cast<size_t>(evidence)];
}

std::string print_bits(const bits::Row& row) {
  std::string out;
  for (uint8_t i = 0; i < row.where.count; ++i) {
    const bits::Piece piece = row.where.pieces[i];
    const std::string bits = piece.width == 1 ? fmt::format("bit {}", piece.lsb)
                                              : fmt::format("bits {}:{}", piece.lsb + piece.width - 1, piece.lsb);
    out = fmt::format("word {} {}{}{}", piece.word, bits, out.empty() ? "" : " + ", out);
  }
  return out;
}

std::string print_operations(const Decoded& decoded) {
  const npu::Annotated& fields = decoded.fields;
  if (fields.operations.empty()) return "  no operations\n";
  std::vector<std::string> header = {"job", "what", "shape", "memory", "constants"};
  if (!decoded.ops.empty()) header.insert(header.begin() + 1, "op");
  TextTable table(header);
  const Buffers buffers(decoded.submission);
  const auto memory = places(fields, FieldKind::memory, buffers),
             constants = places(fields, FieldKind::constant, buffers);
  for (size_t i = 0; i < fields.operations.size(); ++i) {
    std::vector<std::string> row = {fmt::format("{}", i), fields.operations[i], shape_of(fields, i), memory[i],
                                    constants[i]};
    if (!decoded.ops.empty()) row.insert(row.begin() + 1, decoded.ops[i].empty() ? "-" : decoded.ops[i]);
    table.add(row);
  }
  return table.print();
}

std::string print_all_fields(const npu::Annotated& decoded, const capture::Submission& submission) {
  TextTable table({"field", "value", "bits", "words", "evidence", "what"});
  for (const AnnotatedField& field : decoded.fields) {
    if (npu::is_inherited(field)) continue;
    const std::string words = fmt::format("{:08x}", fmt::join(raw_words(field, submission), " "));
    table.add({field.path, field.value, field.row == nullptr ? "" : print_bits(*field.row),
               words.empty() ? field.raw : words,
               field.unknown          ? "unknown"
               : field.row == nullptr ? ""
                                      : std::string(evidence_name(field.row->evidence)),
               field.row == nullptr ? "" : field.row->doc});
  }
  return table.print();
}

std::string print_source(const npu::Annotated& decoded, const capture::Submission& submission) {
  std::string out;
  std::set<std::tuple<const bits::Descriptor*, bool, uint64_t, uint32_t>> printed;
  for (const AnnotatedField& field : decoded.fields) {
    if (field.descriptor == nullptr || !field.place) continue;
    if (!printed.emplace(field.descriptor, field.place->in_call, field.place->address, field.place->first_bit).second)
      continue;
    const auto words = npu::words_of(field, submission);
    if (words.ok()) out += bits::as_source(*field.descriptor, bits::unpack(*field.descriptor, *words));
  }
  return out;
}

std::string print_buffers(const npu::Annotated& decoded, const capture::Submission& submission) {
  TextTable table({"buffer", "address", "bytes", "listed", "contents", "what is there"});
  Roles roles = roles_of(decoded, submission);
  for (const capture::BufferSnapshot& one : submission.buffers)
    table.add({fmt::format("{}", one.handle), fmt::format("0x{:08x}", one.address), print_count(one.size_bytes),
               listed_text(one), contents_text(one), fmt::format("{}", fmt::join(roles[&one], ", "))});
  return table.print_wrapped();
}

nlohmann::json to_json(const capture::DeviceInfo& device) {
  nlohmann::json facts = nlohmann::json::object();
  for (const capture::Fact& one : device.facts) facts[one.name] = one.value;
  return {{"kernel_driver", device.kernel_driver},
          {"node", device.node},
          {"compatible", device.compatible},
          {"facts", std::move(facts)}};
}

nlohmann::json to_json(const Decoded& decoded) {
  const npu::Annotated& fields = decoded.fields;
  nlohmann::json parameters = nlohmann::json::object(), operations = nlohmann::json::array(),
                 rows = nlohmann::json::array(), buffers = nlohmann::json::array();
  for (const capture::Parameter& one : decoded.submission.parameters) parameters[one.name] = one.value;
  for (size_t i = 0; i < fields.operations.size(); ++i) {
    nlohmann::json row = {{"what", fields.operations[i]}, {"shape", shape_of(fields, i)}};
    if (!decoded.ops.empty()) row["op"] = decoded.ops[i];
    if (!decoded.weights.empty()) row["weights"] = weights_json(decoded.weights, i);
    operations.push_back(std::move(row));
  }
  const Buffers by_address(decoded.submission);
  for (const AnnotatedField& field : fields.fields) rows.push_back(field_json(field, decoded.submission, by_address));
  Roles roles = roles_of(fields, decoded.submission);
  for (const capture::BufferSnapshot& one : decoded.submission.buffers) buffers.push_back(buffer_json(roles, one));
  return {{"submission", decoded.index},         {"jobs", decoded.submission.jobs.size()},
          {"parameters", std::move(parameters)}, {"operations", std::move(operations)},
          {"buffers", std::move(buffers)},       {"fields", std::move(rows)}};
}

}  // namespace skillet::tools
