#include "runtime/trust.h"

#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/environment.h"
#include "base/log.h"
#include "base/own_file.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "compile/strict_json.h"
#include "runtime/content_hash.h"

namespace skillet::runtime {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 3, kOldestVersion = 2;  // version 2 has no stands_on
// The newest entries of each kind are kept: every model that runs adds programs. Written files are within these limits.
constexpr size_t kEntriesMax = 512, kEvidenceMax = 512, kEntryNameMax = 256, kStandsOnMax = 128;
constexpr std::string_view kQuirk = ",quirk=";  // in a simulated device's name
constexpr const char* kSerialFile = "/sys/firmware/devicetree/base/serial-number";
constexpr const char* kSystemFolder = "/var/lib/skillet/trust";

// The board's serial number; empty if the kernel reports none.
std::string serial_number() {
  std::ifstream file(kSerialFile);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

// True if this process uses the nodes of `skillet virtual`.
bool is_virtual() {
  const char* const chip = environment_variable("SKILLET_VIRTUAL_CHIP");
  return chip != nullptr && *chip != '\0';
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "";
}

// A fact in the form that a file can hold: a value that is too long, or no text (a serial number that was never set),
// is replaced by its hash.
std::string fact_of(std::string_view name, const std::string& value) {
  std::string fact = fmt::format("{}={}", name, value);
  if (fact.size() <= kEntryNameMax && is_utf8(value) && printable(value) == value) return fact;
  return fmt::format("{}=hash:{}", name, hash_text(value));
}

Result<std::vector<std::string>> names_of(const Json& json, const std::string& where, const char* name) {
  SK_TRY_ASSIGN(const Json* const list, compile::list_of(json, where, name));
  std::vector<std::string> out;
  for (const Json& one : *list) {
    if (!one.is_string()) return compile::wrong_field(where + "." + name, "must contain only texts");
    out.push_back(one.get<std::string>());
    if (out.back().size() > kEntryNameMax) return compile::wrong_field(where + "." + name, "must be shorter");
  }
  return out;
}

Result<TrustEntry> entry_of(const Json& json, const std::string& where) {
  SK_TRY(compile::check_names(json, where,
                              {"kind", "name", "verdict", "build", "date", "evidence", "value", "stands_on"}));
  TrustEntry entry;
  SK_TRY_ASSIGN(const std::string kind, compile::text_of(json, where, "kind"));
  const auto* const found = std::ranges::find(kTrustKindNames, kind);
  if (found == kTrustKindNames.end())
    return compile::wrong_field(where + ".kind", fmt::format("must be one of {}", fmt::join(kTrustKindNames, ", ")));
  entry.kind = static_cast<TrustKind>(found - kTrustKindNames.begin());
  SK_TRY_ASSIGN(const std::string verdict, compile::text_of(json, where, "verdict"));
  entry.confirmed = verdict == "confirmed";
  if (!entry.confirmed && verdict != "refuted")
    return compile::wrong_field(where + ".verdict", "must be confirmed or refuted");
  for (const auto& [name, to] : {std::pair{"name", &entry.name}, std::pair{"build", &entry.build},
                                 std::pair{"date", &entry.date}, std::pair{"evidence", &entry.evidence}}) {
    SK_TRY_ASSIGN(*to, compile::text_of(json, where, name));
  }
  if (entry.name.size() > kEntryNameMax || printable(entry.name) != entry.name)
    return compile::wrong_field(where + ".name", "is not a name");
  if (json.contains("stands_on")) {
    if (entry.kind != TrustKind::program)
      return compile::wrong_field(where + ".stands_on", "is allowed for a program only");
    SK_TRY_ASSIGN(entry.stands_on, names_of(json, where, "stands_on"));
  }
  if ((entry.kind == TrustKind::cost) != json.contains("value"))
    return compile::wrong_field(where + ".value", "is required for a cost, and allowed for nothing else");
  if (entry.kind != TrustKind::cost) return entry;
  if (!json["value"].is_number() || !entry.confirmed)
    return compile::wrong_field(where + ".value", "must be a number, with the verdict confirmed");
  entry.value = json["value"].get<double>();
  return entry;
}

Result<TrustFile> parse(std::string_view text) {
  SK_TRY_ASSIGN(const Json json, compile::parse_strictly(text));
  if (json.is_object() && json.contains("skillet_prove"))
    return error(ErrorCode::malformed, "it is a report: use skillet prove --read");
  SK_TRY_ASSIGN(const Json* const version, compile::member(json, "", "skillet_trust"));
  if (version->is_number_integer() && *version > kVersion)
    return error(ErrorCode::unsupported, "skillet_trust {} is from a newer build; this one reads {} only",
                 version->dump(), kVersion);
  if (!version->is_number_integer() || *version < kOldestVersion)
    return compile::wrong_field("skillet_trust",
                                fmt::format("must be {} or {}, which this build reads", kOldestVersion, kVersion));
  SK_TRY(compile::check_names(json, "", {"skillet_trust", "device", "entries"}));
  TrustFile file;
  SK_TRY_ASSIGN(file.device, parse_identity(json));
  SK_TRY_ASSIGN(const Json* const entries, compile::list_of(json, "", "entries"));
  for (size_t i = 0; i < entries->size(); ++i) {
    SK_TRY_INTO(file.entries.emplace_back(), entry_of((*entries)[i], fmt::format("entries[{}]", i)));
  }
  return file;
}

bool is_same(const TrustEntry& a, const TrustEntry& b) {
  return a.kind == b.kind && a.name == b.name && a.build == b.build;
}
bool is_refuted_in(const TrustFile& file, const TrustEntry& entry) {
  return std::ranges::any_of(file.entries,
                             [&](const TrustEntry& one) { return !one.confirmed && is_same(one, entry); });
}

// Two entries of one thing: refuted wins, else the newer one.
void put(std::vector<TrustEntry>& entries, TrustEntry entry) {
  const auto at = std::ranges::find_if(entries, [&](const TrustEntry& one) { return is_same(one, entry); });
  if (at == entries.end())
    entries.push_back(std::move(entry));
  else if (at->confirmed && (!entry.confirmed || entry.date >= at->date))
    *at = std::move(entry);
}

// Clocks may be set back, so this build's own entries precede newer ones of other builds.
auto age_key(const TrustEntry& entry) { return std::pair(is_of_this_build(entry), std::string_view(entry.date)); }

// Keeps one entry of each name, this build's or else the newest, and a maximum of each kind, refuted ones first.
void shorten(std::vector<TrustEntry>& entries) {
  std::ranges::stable_sort(entries, std::greater<>(), age_key);
  std::set<std::pair<TrustKind, std::string>> seen;
  std::erase_if(entries, [&](const TrustEntry& one) {
    return one.name.size() > kEntryNameMax || !seen.emplace(one.kind, one.name).second;
  });
  std::stable_partition(entries.begin(), entries.end(),
                        [](const TrustEntry& one) { return !one.confirmed && is_of_this_build(one); });
  std::array<size_t, kTrustKindNames.size()> count{};
  std::erase_if(entries, [&](const TrustEntry& one) { return ++count[static_cast<size_t>(one.kind)] > kEntriesMax; });
  for (TrustEntry& one : entries) {
    one.evidence = shortened(printable(one.evidence), kEvidenceMax);
    if (one.stands_on && one.stands_on->size() > kStandsOnMax) one.stands_on.reset();
  }
  std::ranges::stable_sort(entries, {}, &TrustEntry::kind);
}

}  // namespace

std::string trust_date() {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Result<DeviceIdentity> parse_identity(const Json& json) {
  SK_TRY_ASSIGN(const Json* const device, compile::member(json, "", "device"));
  DeviceIdentity out;
  SK_TRY_ASSIGN(out.chip, compile::text_of(*device, "device", "chip"));
  SK_TRY_ASSIGN(out.kernel_driver, compile::text_of(*device, "device", "kernel_driver"));
  SK_TRY(compile::check_names(*device, "device", {"chip", "kernel_driver", "facts"}));
  SK_TRY_ASSIGN(out.facts, names_of(*device, "device", "facts"));
  return out;
}

std::string DeviceIdentity::text() const {
  return fmt::format("{}, {}{}{}", chip, kernel_driver, facts.empty() ? "" : ", ", fmt::join(facts, ", "));
}

std::string DeviceIdentity::file_name() const {
  ContentHash hash;
  const std::string all = text();
  hash.add(all.data(), all.size());
  const std::string driver = kernel_driver.substr(0, kernel_driver.find(','));
  return fmt::format("{}-{}-{:016x}.json", chip, driver, hash.value().first);
}

DeviceIdentity identity_of(const std::string& chip, const capture::DeviceInfo& info, bool simulated) {
  DeviceIdentity out{.chip = chip, .kernel_driver = info.kernel_driver, .facts = {}};
  if (!info.compatible.empty()) out.facts.push_back(fact_of("compatible", info.compatible));
  for (const capture::Fact& fact : info.facts) out.facts.push_back(fmt::format("{}={:#x}", fact.name, fact.value));
  if (simulated) {
    out.kernel_driver += ", simulated";
  } else if (is_virtual()) {  // simulated results show nothing about a board
    out.kernel_driver += ", virtual";
  } else {
    out.kernel_driver += ", Linux " + kernel_release();
    if (const std::string serial = serial_number(); !serial.empty()) out.facts.push_back(fact_of("serial", serial));
  }
  // A quirk of a simulated chip, in this process or behind a virtual node.
  if (const char* const quirk = environment_variable("SKILLET_SIM_QUIRK"); quirk != nullptr)
    out.facts.push_back(fact_of("quirk", quirk));
  const size_t quirk_at = info.node.find(kQuirk);
  if (simulated && quirk_at != std::string::npos)
    out.facts.push_back(fact_of("quirk", info.node.substr(quirk_at + kQuirk.size())));
  return out;
}

nlohmann::ordered_json json_of(const DeviceIdentity& device) {
  return {{"chip", device.chip}, {"kernel_driver", device.kernel_driver}, {"facts", device.facts}};
}

std::string print(const TrustFile& file) {
  nlohmann::ordered_json out = {{"skillet_trust", kVersion}, {"device", json_of(file.device)}};
  out["entries"] = Json::array();
  for (const TrustEntry& one : file.entries) {
    nlohmann::ordered_json entry = {{"kind", kTrustKindNames[static_cast<size_t>(one.kind)]},
                                    {"name", one.name},
                                    {"verdict", one.confirmed ? "confirmed" : "refuted"},
                                    {"build", one.build},
                                    {"date", one.date},
                                    {"evidence", one.evidence}};
    if (one.kind == TrustKind::cost) entry["value"] = one.value;
    if (one.stands_on) entry["stands_on"] = *one.stands_on;
    out["entries"].push_back(std::move(entry));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool is_of_this_build(const TrustEntry& entry) { return entry.build == compile::build_id(); }

TrustEntry entry_of_probe(std::string_view assumption, bool holds, std::string_view what) {
  return {.kind = TrustKind::assumption,
          .name = std::string(assumption),
          .confirmed = holds,
          .build = {},
          .date = {},
          .evidence = holds ? "its probe is right" : std::string(what)};
}

Result<TrustFile> parse_trust_file(std::string_view text) { return parse(text).with_context("trust file"); }

std::string trust_folder(bool simulated) {
  if (const char* const named = environment_variable("SKILLET_TRUST_DIR"); named != nullptr) return expand_home(named);
  if (simulated) return "";
  if (is_virtual()) {
    const char* const root = environment_variable("SKILLET_VIRTUAL_ROOT");  // deleted when the command ends
    return root == nullptr || *root == '\0' ? "" : std::string(root) + "/trust";
  }
  if (::geteuid() == 0) return kSystemFolder;
  if (const char* const state = environment_variable("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::string(state) + "/skillet/trust";
  const std::string home = expand_home("~/.local/state/skillet/trust");
  return home.starts_with("/") ? home : "";
}

Trust::Trust(DeviceIdentity device, std::string folder, std::chrono::milliseconds patience) : patience_(patience) {
  if (!folder.empty()) path_ = folder + "/" + device.file_name();
  file_.device = std::move(device);
  take_in(read());
}

Trust::FileState Trust::read() {
  if (path_.empty()) return {};
  const auto bytes = read_own_file(path_, kTrustFileMax, [](auto...) { return Result<void>(); });
  if (bytes.ok() && !*bytes) return {.is_ours = true};
  auto file = bytes.ok() ? parse({reinterpret_cast<const char*>((*bytes)->data()), (*bytes)->size()})
                               .with_context(path_ + ": trust file")
                         : Result<TrustFile>(bytes.error());
  if (file.ok() && file->device != file_.device)
    file = error(ErrorCode::malformed, "{}: belongs to another device ({})", path_, file->device.text());
  if (file.ok()) return {.is_ours = true, .entries = std::move(file->entries)};
  const bool is_newer = bytes.ok() && file.error().code == ErrorCode::unsupported;
  FileState out{.is_unbelieved = !is_newer, .is_newer = is_newer};
  if (!std::exchange(is_unreadable_, true))
    log::warning("{}; the file is ignored{}", file.error().message, out.is_newer ? ", and not changed" : "");
  return out;
}

// Merges what other processes wrote or removed since this object last wrote the file.
void Trust::take_in(FileState state) {
  if (!state.is_ours) return;
  if (std::exchange(is_in_step_, true)) file_.entries.clear();
  for (TrustEntry& entry : state.entries) put(file_.entries, std::move(entry));
}

std::optional<TrustEntry> Trust::find(TrustKind kind, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const TrustEntry& one : file_.entries)
    if (one.kind == kind && one.name == name && is_of_this_build(one)) return one;
  return std::nullopt;
}

bool Trust::is_refuted(TrustKind kind, std::string_view name) const {
  const auto found = find(kind, name);
  return found && !found->confirmed;
}

bool Trust::refutes(TrustKind kind) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(file_.entries, [&](const TrustEntry& one) {
    return !one.confirmed && one.kind == kind && is_of_this_build(one);
  });
}

std::vector<sim::ParameterValue> Trust::costs() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, const TrustEntry*> newest;
  for (const TrustEntry& one : file_.entries) {
    if (one.kind != TrustKind::cost) continue;
    const TrustEntry*& there = newest[one.name];
    if (there == nullptr || age_key(*there) <= age_key(one)) there = &one;
  }
  std::vector<sim::ParameterValue> out;
  for (const auto& [name, one] : newest) out.push_back({name, one->value});
  return out;
}

void Trust::warn_once(const std::string& line) const {
  const std::lock_guard lock(mutex_);
  if (warned_.insert(line).second) log::warning("{}", line);
}

void Trust::add(std::vector<TrustEntry> entries) {
  const std::lock_guard lock(mutex_);
  const auto written = add_all(std::move(entries));
  if (!written.ok() && !cannot_write_)
    log::warning("results of the comparison on {} cannot be stored, so each process compares again: {}",
                 file_.device.chip, written.error().message);
  cannot_write_ |= !written.ok();
}

Result<void> Trust::check_kept() const {
  if (!path_.empty()) return {};
  return error(ErrorCode::invalid_argument, "nothing is stored for {}; set SKILLET_TRUST_DIR to a folder",
               file_.device.chip);
}

Result<std::vector<std::string>> Trust::add_kept(std::vector<TrustEntry> entries) {
  SK_TRY(check_kept());
  const std::lock_guard lock(mutex_);
  SK_TRY(add_all(entries));
  std::vector<std::string> still_refuted;
  for (TrustEntry& one : entries) {
    one.build = compile::build_id();
    if (one.confirmed && is_refuted_in(file_, one)) still_refuted.push_back(one.name);
  }
  return still_refuted;
}

Result<void> Trust::add_all(std::vector<TrustEntry> entries) {
  const OwnFileLock file_lock = lock_file();
  const FileState before = read();
  take_in(before);
  for (TrustEntry& entry : entries) {
    entry.build = compile::build_id();
    entry.date = trust_date();
    if (entry.confirmed && is_refuted_in(file_, entry)) continue;
    // A new observation is newer than all entries in the file, whatever their dates: the clock may have been set back.
    std::erase_if(file_.entries, [&](const TrustEntry& one) { return is_same(one, entry); });
    file_.entries.insert(file_.entries.begin(), std::move(entry));
  }
  shorten(file_.entries);
  return write(before);
}

OwnFileLock Trust::lock_file() {
  std::error_code ignored;  // a later write reports the error
  if (!path_.empty()) std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  OwnFileLock lock(path_, cannot_lock_ ? std::chrono::milliseconds(0) : patience_);
  if (lock.is_busy() && !cannot_lock_)
    log::warning("{}.lock: another program holds it without writing: entries that both add now may be lost", path_);
  cannot_lock_ = lock.is_busy();
  return lock;
}

Result<void> Trust::write(const FileState& before) {
  if (path_.empty()) return {};
  is_in_step_ = false;
  if (before.is_newer) return error(ErrorCode::unsupported, "{} is from a newer build", path_);
  if (before.is_unbelieved) {
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0 && status.st_uid != ::geteuid())
      return error(ErrorCode::io, "{}: belongs to another user; set SKILLET_TRUST_DIR to a folder of your own", path_);
    const std::string aside = path_ + ".unreadable";
    if (::rename(path_.c_str(), aside.c_str()) != 0 && errno != ENOENT)
      return error(ErrorCode::io, "{}: the old file cannot be renamed to this: {}", aside, std::strerror(errno));
    log::warning("the old file was renamed to {}", aside);
  }
  const std::string text = print(file_);
  SK_TRY(replace_own_file(path_, {{reinterpret_cast<const uint8_t*>(text.data()), text.size()}}));
  is_in_step_ = true;
  is_unreadable_ = false;
  return {};
}

Result<size_t> Trust::forget(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const OwnFileLock file_lock = lock_file();
  if (file_lock.is_busy())
    return error(ErrorCode::io, "{}.lock: another program holds it: try again when it has ended", path_);
  const FileState before = read();
  take_in(before);
  const auto is_meant = [&](const TrustEntry& one) { return name.empty() || one.name == name; };
  const auto has = [&](TrustKind kind) {
    return std::ranges::any_of(file_.entries, [&](const TrustEntry& one) { return is_meant(one) && one.kind == kind; });
  };
  const bool has_assumption = has(TrustKind::assumption), has_operation = has(TrustKind::operation);
  const auto gone = static_cast<size_t>(std::erase_if(file_.entries, is_meant));
  const auto is_compared_again = [&](const TrustEntry& one) {
    if (one.kind != TrustKind::program) return false;
    const bool may_stand_on_it = !one.stands_on || std::ranges::count(*one.stands_on, name) != 0;
    return (has_assumption && may_stand_on_it) || (has_operation && !one.confirmed);
  };
  std::erase_if(file_.entries, is_compared_again);
  SK_TRY(write(before));
  return gone;
}

TrustFile Trust::file() const {
  const std::lock_guard lock(mutex_);
  return file_;
}

}  // namespace skillet::runtime
