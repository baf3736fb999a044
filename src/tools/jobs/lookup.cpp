// `skillet lookup`: prints documentation and evidence of a word, a bit, a register or a field.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/parse_number.h"
#include "npu/driver.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/decode_print.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string what, chip;
  bool json = false;
};

struct Match {
  std::string family, name, place, kind, evidence, doc;
  std::vector<std::string> chips = {};  // chips that have this row

  std::string key() const { return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", family, name, place, kind, evidence, doc); }
};

// "0x10a0": an address; "15", "15.31": a word, or a bit of one; "nn_instruction:15.31": of this descriptor; anything
// else: part of a name.
struct Query {
  std::string name;  // lower case
  std::optional<uint32_t> address;
  std::optional<int> word, bit;

  static Query parse(const std::string& text) {
    Query out;
    std::string rest = text;
    std::ranges::transform(rest, rest.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (rest.starts_with("0x")) {
      out.address = parse_number<uint32_t>(std::string_view(rest).substr(2), 16);
      if (out.address) return out;
    }
    const size_t colon = rest.rfind(':');
    const std::string place = colon == std::string::npos ? rest : rest.substr(colon + 1);
    const size_t dot = place.find('.');
    out.word = parse_number<int>(std::string_view(place).substr(0, dot));
    if (out.word && dot != std::string::npos) out.bit = parse_number<int>(std::string_view(place).substr(dot + 1));
    const bool is_place = out.word && (dot == std::string::npos || out.bit);
    if (!is_place) out.word = out.bit = std::nullopt;
    out.name = !is_place ? rest : colon == std::string::npos ? "" : rest.substr(0, colon);
    return out;
  }

  bool names(std::string_view text) const { return name == "*" || text.find(name) != std::string_view::npos; }
  bool takes(const bits::Descriptor& descriptor, const bits::Row& row) const {
    if (address) return descriptor.address != 0 && descriptor.address == *address;
    if (!word) return names(fmt::format("{}.{}", descriptor.name, row.name));
    return names(descriptor.name) &&
           std::any_of(row.where.pieces.begin(), row.where.pieces.begin() + row.where.count,
                       [&](const bits::Piece& piece) {
                         return piece.word == *word && (!bit || (*bit >= piece.lsb && *bit < piece.lsb + piece.width));
                       });
  }
  bool takes(const npu::PlainRegister& one) const {
    return address ? one.address == *address : !word && names(one.name);
  }
};

std::string kind_text(const bits::Row& row) {
  switch (row.codec.kind) {
    case bits::CodecKind::raw: return "";
    case bits::CodecKind::aligned: return fmt::format("in units of {}", uint64_t{1} << row.codec.argument);
    case bits::CodecKind::minus_one: return "minus 1";
    case bits::CodecKind::log2_of: return "log2";
    case bits::CodecKind::always: return fmt::format("always {:#x}", row.codec.argument);
  }
  return "";
}

std::string values_text(const bits::Row& row) {
  std::string out = row.doc;
  for (const bits::EnumName& one : row.names.values) out += fmt::format("; {} {}", one.value, one.name);
  return out;
}

void search(const Query& query, std::string_view family, const npu::HardwareRows& rows, std::vector<Match>& out) {
  for (const npu::PlainRegister& one : rows.registers) {
    if (query.takes(one))
      out.push_back({std::string(family), one.name, fmt::format("register 0x{:04x}", one.address), "", "", one.doc});
  }
  for (const bits::Descriptor* descriptor : rows.descriptors) {
    const std::string at = descriptor->address == 0 ? "" : fmt::format("register 0x{:04x} ", descriptor->address);
    for (const bits::Row& row : descriptor->rows) {
      if (query.takes(*descriptor, row))
        out.push_back({std::string(family), fmt::format("{}.{}", descriptor->name, row.name), at + print_bits(row),
                       kind_text(row), std::string(evidence_name(row.evidence)), values_text(row)});
    }
  }
}

// Merges equal rows of several chips; rows that differ are kept, each with its chips.
class Matches {
 public:
  void add(const Query& query, const npu::Driver& driver, const npu::Chip& chip, const npu::HardwareRows& rows) {
    std::vector<Match> found;
    search(query, driver.name(), rows, found);
    for (Match& one : found) {
      const auto [at, is_new] = places_.emplace(one.key(), all_.size());
      if (is_new) all_.push_back(std::move(one));
      std::vector<std::string>& chips = all_[at->second].chips;
      if (chips.empty() || chips.back() != chip.name) chips.push_back(std::string(chip.name));
    }
  }
  // Returns rows with those of the same name next to each other.
  std::vector<Match> take() {
    std::map<std::string, size_t> first;
    for (size_t i = 0; i < all_.size(); ++i) first.emplace(all_[i].family + "\n" + all_[i].name, i);
    std::ranges::stable_sort(all_, {}, [&](const Match& one) { return first[one.family + "\n" + one.name]; });
    return std::move(all_);
  }

 private:
  std::vector<Match> all_;
  std::unordered_map<std::string, size_t> places_;
};

Result<std::vector<Match>> find_all(const Options& options) {
  const Query query = Query::parse(options.what);
  Matches out;
  if (!options.chip.empty()) {
    SK_TRY_ASSIGN(const npu::Chip chip, npu::find_chip(options.chip));
    SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
    const npu::HardwareRows rows = driver->hardware_rows(chip);
    if (rows.descriptors.empty() && rows.registers.empty())
      return error(ErrorCode::unsupported, "{}: no rows describe it{}{}", chip.name, chip.unproven.empty() ? "" : ": ",
                   chip.unproven);
    out.add(query, *driver, chip, rows);
    return out.take();
  }
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) out.add(query, *driver, chip, driver->hardware_rows(chip));
  }
  return out.take();
}

std::string chips_text(const Match& one) {
  for (const npu::Driver* driver : npu::drivers()) {
    if (driver->name() == one.family && one.chips.size() > 2 && one.chips.size() == driver->chips().size())
      return "all of " + one.family;
  }
  return fmt::format("{}", fmt::join(one.chips, ", "));
}

void print(const std::vector<Match>& found, bool json) {
  if (json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Match& one : found)
      rows.push_back({{"family", one.family},
                      {"chips", one.chips},
                      {"name", one.name},
                      {"place", one.place},
                      {"stored", one.kind},
                      {"evidence", one.evidence},
                      {"what", one.doc}});
    return out_report({{"found", rows}});
  }
  TextTable table({"name", "evidence", "where, what, of which chips"});
  for (const Match& one : found)
    table.add(
        {one.name, one.evidence,
         fmt::format("{}{}{}: {} ({})", one.place, one.kind.empty() ? "" : ", ", one.kind, one.doc, chips_text(one))});
  if (!table.empty()) out("{}", table.print_wrapped());
}

Result<void> lookup(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const std::vector<Match> found, find_all(options));
  outcome.begin();
  print(found, options.json);
  if (found.empty()) return error(ErrorCode::invalid_argument, "no row has '{}'", options.what);
  return {};
}

}  // namespace

void add_lookup(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("lookup",
                             "Print what is known about a bit, a register or a field of an NPU's commands.\n"
                             "Examples:\n"
                             "  skillet lookup kernel_x_size\n"
                             "  skillet lookup 15.31                    word 15, bit 31 of any descriptor\n"
                             "  skillet lookup 0x1030 --chip rk3588     a register by its address");
  verb.option("WHAT", options->what,
              "part of a name, * for all; WORD or WORD.BIT, with DESCRIPTOR: in front for one; 0xADDRESS")
      .required()
      .check(not_empty());
  verb.option("--chip", options->chip, "only of this chip (see skillet devices)");
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(lookup(*options, outcome)); });
}

}  // namespace skillet::tools
