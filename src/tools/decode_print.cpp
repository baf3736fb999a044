#include "tools/decode_print.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "driver/field_edit.h"
#include "tools/text_table.h"

namespace skillet::tools {
namespace {

using driver::AnnotatedField;
using driver::FieldKind;

const capture::BufferSnapshot* buffer_of(const capture::Submission& submission, uint64_t address) {
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (one.address != 0 && address >= one.address && address - one.address < one.size_bytes) return &one;
  }
  return nullptr;
}

std::string short_name(const AnnotatedField& field) {
  return field.row == nullptr ? field.name : std::string(field.row->name);
}

// "in_address 3+0, out_address 4+4096"
std::string places(const driver::Annotated& decoded, size_t operation, FieldKind kind,
                   const capture::Submission& submission) {
  std::string out;
  for (const AnnotatedField& field : decoded.fields) {
    if (field.operation != operation || field.kind != kind || field.unused || field.address == 0) continue;
    const capture::BufferSnapshot* const buffer = buffer_of(submission, field.address);
    const std::string place = buffer == nullptr ? fmt::format("{:#x}", field.address)
                                                : fmt::format("{}+{}", buffer->handle, field.address - buffer->address);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", short_name(field), place);
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

// What operations have in a buffer: the names of their addresses, each once.
std::string roles(const driver::Annotated& decoded, const capture::Submission& submission,
                  const capture::BufferSnapshot& buffer) {
  std::vector<std::string> names;
  const auto add = [&](uint64_t address, const std::string& name) {
    if (buffer_of(submission, address) == &buffer && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  };
  for (const capture::Job& job : submission.jobs) {
    for (const capture::Commands& list : job.commands) add(list.address, "commands");
  }
  for (const AnnotatedField& field : decoded.fields) {
    if (field.kind != FieldKind::value && !field.unused)
      add(field.address, field.kind == FieldKind::commands ? "commands" : short_name(field));
  }
  return fmt::format("{}", fmt::join(names, ", "));
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

std::string print_operations(const driver::Annotated& decoded, const capture::Submission& submission) {
  if (decoded.operations.empty()) return "  no operations\n";
  TextTable table({"job", "what", "shape", "memory", "constants"});
  for (size_t i = 0; i < decoded.operations.size(); ++i)
    table.add({fmt::format("{}", i), decoded.operations[i], i < decoded.shapes.size() ? decoded.shapes[i] : "",
               places(decoded, i, FieldKind::memory, submission), places(decoded, i, FieldKind::constant, submission)});
  return table.print();
}

std::string print_all_fields(const driver::Annotated& decoded, const capture::Submission& submission) {
  TextTable table({"field", "value", "bits", "words", "evidence", "what"});
  for (const AnnotatedField& field : decoded.fields) {
    std::string words;
    const auto raw = driver::words_of(field, submission);
    for (size_t i = 0; raw.ok() && i < raw->size(); ++i) {
      bool is_part = field.row == nullptr;
      for (uint8_t p = 0; !is_part && p < field.row->where.count; ++p) is_part = field.row->where.pieces[p].word == i;
      if (is_part) words += fmt::format("{}{:08x}", words.empty() ? "" : " ", (*raw)[i]);
    }
    if (words.empty()) words = field.raw;
    table.add({field.path, field.value, field.row == nullptr ? "" : print_bits(*field.row), words,
               field.unknown          ? "unknown"
               : field.row == nullptr ? ""
                                      : std::string(evidence_name(field.row->evidence)),
               field.row == nullptr ? "" : field.row->doc});
  }
  return table.print();
}

std::string print_buffers(const driver::Annotated& decoded, const capture::Submission& submission) {
  TextTable table({"buffer", "address", "bytes", "listed", "contents", "what is there"});
  for (const capture::BufferSnapshot& one : submission.buffers)
    table.add({fmt::format("{}", one.handle), fmt::format("0x{:08x}", one.address), print_count(one.size_bytes),
               listed_text(one), contents_text(one), roles(decoded, submission, one)});
  return table.print();
}

nlohmann::json buffers_json(const driver::Annotated& decoded, const capture::Submission& submission) {
  nlohmann::json out = nlohmann::json::array();
  for (const capture::BufferSnapshot& one : submission.buffers)
    out.push_back({{"buffer", one.handle},
                   {"address", one.address},
                   {"bytes", one.size_bytes},
                   {"read", one.read},
                   {"write", one.write},
                   {"contents", contents_text(one)},
                   {"what", roles(decoded, submission, one)}});
  return out;
}

}  // namespace skillet::tools
