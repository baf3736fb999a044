// `skillet trust`: shows results of this machine's NPU that were found right or wrong.
#include "runtime/trust.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "runtime/device_context.h"
#include "tools/cli/verbs.h"
#include "tools/machine/trust_summary.h"
#include "tools/show/text_table.h"
#include "tools/tensors/zip_file.h"

namespace skillet::tools {
namespace {

using runtime::TrustEntry;
using runtime::TrustFile;
using runtime::TrustKind;

struct Options {
  std::string device = "npu", forget, export_to, import_from;
  bool json = false, apply = false;
};

std::string_view kind_name(TrustKind kind) { return runtime::kTrustKindNames[static_cast<size_t>(kind)]; }

std::string verdict(const TrustEntry& entry) {
  return fmt::format("{}{}", entry.confirmed ? "confirmed" : "refuted",
                     runtime::is_of_this_build(entry) || entry.kind == TrustKind::cost ? "" : " (another build)");
}

nlohmann::json json_of(const TrustFile& file, const std::string& path, const TrustSummary& known) {
  nlohmann::json entries = nlohmann::json::array();
  for (const TrustEntry& one : file.entries)
    entries.push_back({{"kind", kind_name(one.kind)},
                       {"name", one.name},
                       {"confirmed", one.confirmed},
                       {"counts", runtime::is_of_this_build(one) || one.kind == TrustKind::cost},
                       {"date", one.date},
                       {"value", one.kind == TrustKind::cost ? nlohmann::json(one.value) : nlohmann::json()},
                       {"evidence", one.evidence}});
  nlohmann::json not_asked = nlohmann::json::array();
  for (const NotAsked& one : known.not_asked) not_asked.push_back({{"name", one.name}, {"why", one.why}});
  return {{"device", file.device.text()},
          {"file", path},
          {"entries", entries},
          {"open", known.open},
          {"not_asked", not_asked}};
}

void print(const TrustFile& file, const std::string& path, const TrustSummary& known) {
  out("{}\n{}\n", wrapped(file.device.text(), 2),
      path.empty() ? "nothing is stored after this process" : "kept in " + path);
  TextTable table({"what", "verdict", "date", "evidence"});
  for (const TrustEntry& one : file.entries) {
    if (one.kind == TrustKind::program && one.confirmed) continue;  // counted below
    const bool is_hash = one.kind == TrustKind::program || one.kind == TrustKind::operation;
    const std::string name = is_hash ? fmt::format("{} {}", kind_name(one.kind), one.name) : one.name;
    table.add({name, verdict(one), one.date.substr(0, 10), one.evidence});
  }
  if (!table.empty()) out("{}", table.print_wrapped());
  const size_t all = known.confirmed.size() + known.refuted.size() + known.open.size();
  const std::string right = fmt::format("correct on this device: {} of networks; not tried yet: {} of {}{}{}",
                                        counted(known.programs, "part"), known.open.size(), counted(all, "assumption"),
                                        known.open.empty() ? "" : ": ", fmt::join(known.open, ", "));
  out("{}\n", wrapped(right, 2));
  std::map<std::string_view, std::vector<std::string_view>> not_asked;  // by reason
  for (const NotAsked& one : known.not_asked) not_asked[one.why].push_back(one.name);
  for (const auto& [why, names] : not_asked)
    out("{}\n", wrapped(fmt::format("not to be tried here: {}: {}", fmt::join(names, ", "), why), 2));
}

Result<TrustFile> read_trust_file(const std::string& path) {
  SK_TRY_ASSIGN(const Bytes file, read_file_start(path, runtime::kTrustFileMax + 1));
  if (is_zip(file))
    return error(ErrorCode::malformed, "{}: a zip archive; if it is a report, use skillet prove --read {}", path, path);
  if (file.size() > runtime::kTrustFileMax)
    return error(ErrorCode::malformed, "{}: the file is too large for a trust store", path);
  return runtime::parse_trust_file({reinterpret_cast<const char*>(file.data()), file.size()}).with_context(path);
}

// Trust from another file is only shown; --apply is required to use it.
Result<void> import(const Options& options, runtime::Trust& trust) {
  SK_TRY_ASSIGN(TrustFile given, read_trust_file(options.import_from));
  const runtime::DeviceIdentity here = trust.file().device;
  if (given.device != here)
    return error(ErrorCode::invalid_argument, "{}: belongs to another device: {}; this one is {}", options.import_from,
                 given.device.text(), here.text());
  out("{}: of {}\n", printable(options.import_from), given.device.text());
  std::erase_if(given.entries,
                [](const TrustEntry& one) { return !runtime::is_of_this_build(one) && one.kind != TrustKind::cost; });
  for (const TrustEntry& one : given.entries)
    out("{} {}: {}, {}, {}\n", kind_name(one.kind), one.name, verdict(one), one.date, one.evidence);
  const std::string count = counted(given.entries.size(), "entry");
  if (!options.apply) {
    out("{} of this build; --apply imports them, though they were not measured on this machine\n", count);
    return {};
  }
  for (TrustEntry& one : given.entries) one.evidence = fmt::format("{} (imported)", one.evidence);
  SK_TRY_ASSIGN(const std::vector<std::string> refuted, trust.add_kept(std::move(given.entries)));
  out("{} of this build imported{}\n", count, still_refuted(refuted));
  return {};
}

Result<void> trust(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  if (target.trust == nullptr)
    return error(ErrorCode::invalid_argument, "--device {}: nothing is stored for it; name an NPU", options.device);
  runtime::Trust& known = *target.trust;
  if (!options.forget.empty()) {
    SK_TRY_ASSIGN(const size_t gone, known.forget(options.forget == "all" ? "" : options.forget));
    if (gone == 0 && options.forget != "all")
      return error(ErrorCode::invalid_argument, "--forget {}: there is no such entry", options.forget);
    out("forgotten: {}; networks are compared again when loaded next\n", counted(gone, "entry"));
    return {};
  }
  if (!options.import_from.empty()) return import(options, known);
  if (!options.export_to.empty()) {
    const std::string text = runtime::print(known.file());
    outcome.begin();
    return write_file(options.export_to, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  if (options.json)
    out_report(json_of(known.file(), known.path(), summary_of_trust(target)));
  else
    print(known.file(), known.path(), summary_of_trust(target));
  return {};
}

}  // namespace

void add_trust(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("trust",
               "Show what this machine's NPU computed correctly or wrong: operations that no recorded job\n"
               "shows run on it only after a comparison with the CPU on it (docs/trust.md).\n"
               "Example: skillet trust --export trust.json");
  verb.option("--device", options->device, "device: npu, /dev/..., etnaviv0, sim:CHIP (with SKILLET_TRUST_DIR)")
      .shows_default();
  const auto forget =
      verb.option("--forget", options->forget, "forget an entry by its name, or all: it is tried again");
  const auto to = verb.option("--export", options->export_to,
                              "write a file for --import on such a device; for reports use skillet prove")
                      .excludes(forget);
  const auto from = verb.option("--import", options->import_from, "show what such a file contains for this device")
                        .excludes(forget)
                        .excludes(to);
  verb.flag("--apply", options->apply, "add the entries that --import shows").needs(from);
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(trust(*options, outcome)); });
}

}  // namespace skillet::tools
