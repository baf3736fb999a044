// `skillet prove`: tests on this machine's NPU what no recorded job shows, and writes a report to share; also prints
// such a report.
#include "runtime/prove.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/own_file.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "kernels/api/drm_file.h"
#include "runtime/content_hash.h"
#include "runtime/device_context.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/machine/machine_facts.h"
#include "tools/machine/trust_summary.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"
#include "tools/tensors/zip_file.h"
#include "tools/time/clocks.h"

namespace skillet::tools {
namespace {

using runtime::ProofKind;
using runtime::ProofOutcome;
using runtime::ProofReport;
using runtime::ProofStep;

constexpr size_t kReportMax = size_t{1} << 24;
constexpr const char* kMember = "report.json";

struct ProveFlags {
  std::string device = "npu", output, read;
  bool risky = false, apply = false, full = false, json = false;
};

Result<std::string> report_text_of(const std::string& path) {
  SK_TRY_ASSIGN(const Bytes file, read_file_start(path, kReportMax + 1));
  if (file.size() > kReportMax) return error(ErrorCode::malformed, "{}: the file is too large for a report", path);
  if (!is_zip(file)) return std::string(file.begin(), file.end());
  SK_TRY_ASSIGN(const std::vector<ZipMember> members, zip_members(file));
  for (const ZipMember& one : members) {
    if (one.name != kMember) continue;
    SK_TRY_ASSIGN(const Bytes bytes, unpack(one, kReportMax));
    return std::string(bytes.begin(), bytes.end());
  }
  return error(ErrorCode::malformed, "{}: it contains no {}", path, kMember);
}

Result<ProofReport> read_report(const std::string& path) {
  SK_TRY_ASSIGN(const std::string text, report_text_of(path));
  return runtime::parse_proof_report(text).with_context(path);
}

Result<void> write_report(const std::string& path, const ProofReport& report) {
  if (path.empty()) return {};
  const std::string text = runtime::print(report);
  Bytes bytes(text.begin(), text.end());
  if (path.ends_with(".zip")) {
    const ZipEntry entry{.name = kMember, .bytes = std::move(bytes)};
    SK_TRY_ASSIGN(bytes, zip_of({&entry, 1}));
  }
  return replace_own_file(path, {bytes});
}

// Facts that can be read without root.
std::vector<std::pair<std::string, std::string>> facts_of(const runtime::NamedCore& core) {
  const MachineFacts machine = gather_facts();
  std::vector<std::pair<std::string, std::string>> facts = {{"chip", core.chip.title},
                                                            {"kernel", machine.kernel_release}};
  if (!machine.board.empty()) facts.emplace_back("board", machine.board);
  if (!core.simulated) {
    const auto file = kernels::DrmFile::open(kernels::system_calls(), core.core.info.node);
    const auto version = file.ok() ? file->version() : Result<kernels::DrmFile::Version>(file.error());
    if (version.ok())
      facts.emplace_back("kernel driver", fmt::format("{} {}.{}", version->name, version->major, version->minor));
  }
  for (const Clock& one : read_clocks())
    facts.emplace_back("clock of " + one.name, fmt::format("{:.0f} MHz, governor {}", one.mhz, one.governor));
  for (const Temperature& one : read_temperatures())
    facts.emplace_back("temperature of " + one.name, fmt::format("{:.0f} C", one.celsius));
  return facts;
}

struct Refuted {
  const ProofStep* step = nullptr;
  std::string place;  // place of the row that should change
  std::string_view assumed, sections;
  std::vector<std::string> candidates;
  std::string answer;
};

std::string answer_of(const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "like no simulated chip";
  if (candidates.size() == 1) return "this silicon is like quirk " + candidates[0];
  return fmt::format("this silicon is like one of {}; the probe does not distinguish them",
                     fmt::join(candidates, ", "));
}

Result<std::vector<Refuted>> refuted_of(const ProofReport& report) {
  std::vector<Refuted> all;
  for (const ProofStep& step : report.steps) {
    if (step.kind != ProofKind::assumption || !runtime::is_refuted(step.outcome)) continue;
    const runtime::AssumptionRow row = runtime::row_of(report, step);
    if (row.row == nullptr) continue;
    Refuted& one = all.emplace_back();
    one.step = &step;
    one.place = fmt::format("src/npus/{}/compiler/assumptions*.def: {}", row.driver->name(), step.name);
    one.assumed = row.row->what;
    one.sections = row.row->sections;
    SK_TRY_ASSIGN(one.candidates, runtime::candidates_of(report, step));
    one.answer = answer_of(one.candidates);
  }
  return all;
}

using Costs = std::vector<runtime::MeasuredCost>;

nlohmann::json json_of(const Costs& costs) {
  nlohmann::json out = nlohmann::json::array();
  for (const runtime::MeasuredCost& one : costs)
    out.push_back({{"name", one.name},
                   {"expected", one.expected},
                   {"value", one.value ? nlohmann::json(*one.value) : nlohmann::json()},
                   {"error", one.error},
                   {"unit", one.unit}});
  return out;
}

nlohmann::json json_of(const ProofReport& report, const std::vector<Refuted>& refuted, const Costs& costs,
                       size_t applied) {
  nlohmann::json facts = nlohmann::json::array(), steps = nlohmann::json::array(), wrong = nlohmann::json::array();
  for (const auto& [name, value] : report.facts) facts.push_back({{"name", name}, {"value", value}});
  for (const ProofStep& step : report.steps)
    steps.push_back({{"kind", runtime::kProofKindNames[static_cast<size_t>(step.kind)]},
                     {"name", step.name},
                     {"outcome", runtime::name_of(step.outcome)},
                     {"what", step.what}});
  for (const Refuted& one : refuted)
    wrong.push_back({{"name", one.step->name},
                     {"candidates", one.candidates},
                     {"answer", one.answer},
                     {"row", one.place},
                     {"sections", one.sections}});
  return {{"device", report.device.text()},
          {"build", report.build},
          {"date", report.date},
          {"ended", report.ended},
          {"facts", facts},
          {"steps", steps},
          {"refuted", wrong},
          {"costs", json_of(costs)},
          {"applied", applied}};
}

// One line for each cost; `*`: not as expected.
std::string print(const Costs& costs) {
  if (costs.empty()) return "";
  TextTable table({"measured", "", "expected"});
  for (const runtime::MeasuredCost& one : costs) {
    const bool differs = one.value && std::abs(*one.value - one.expected) > one.error;
    table.add({one.name,
               one.value ? fmt::format("{:.4g} +-{:.2g} {}{}", *one.value, one.error, one.unit, differs ? " *" : "")
                         : std::string("not visible in these times"),
               fmt::format("{:.4g}", one.expected)});
  }
  return table.print();
}

void print(const ProofReport& report, const std::vector<Refuted>& refuted, const Costs& costs) {
  out("{}\n", report.device.text());
  for (const auto& [name, value] : report.facts) out("{}: {}\n", name, value);
  if (report.build != compile::build_id())
    out("made by another build of Skillet ({}), {}\n", report.build, report.date);
  for (const ProofKind kind : {ProofKind::assumption, ProofKind::operation, ProofKind::time}) {
    for (const ProofOutcome outcome :
         {ProofOutcome::right, ProofOutcome::wrong, ProofOutcome::hangs, ProofOutcome::not_asked, ProofOutcome::risky,
          ProofOutcome::failed, ProofOutcome::begun}) {
      std::vector<std::string> names;
      for (const ProofStep& step : report.steps)
        if (step.kind == kind && step.outcome == outcome) names.push_back(step.name);
      if (names.empty()) continue;
      out("{}\n", wrapped(fmt::format("{}s, {}: {}", runtime::kProofKindNames[static_cast<size_t>(kind)],
                                      runtime::name_of(outcome), fmt::join(names, ", ")),
                          2));
    }
  }
  for (const Refuted& one : refuted)
    out("\n{}\n", wrapped(fmt::format("{}: assumed: {}. {} here: {}. Change {} (specification: {})", one.step->name,
                                      one.assumed, one.step->what, one.answer, one.place, one.sections),
                          2));
  if (!costs.empty()) out("\n{}", print(costs));
  if (!report.ended.empty()) out("\n{}\n", report.ended);
}

struct Applied {
  size_t count = 0;
  std::vector<std::string> refuted;  // refuted before, so they are not taken
};

Result<void> show(const ProveFlags& flags, const ProofReport& report, const Applied& applied) {
  SK_TRY_ASSIGN(const std::vector<Refuted> refuted, refuted_of(report));
  SK_TRY_ASSIGN(const Costs costs, runtime::costs_of(report));
  if (flags.json) {
    out_report(json_of(report, refuted, costs, applied.count));
    return {};
  }
  print(report, refuted, costs);
  if (flags.apply)
    out("{} of its verdicts were added to this device's trust store{}\n", applied.count,
        still_refuted(applied.refuted));
  return {};
}

// Checks early: the tests take minutes before the result is applied.
Result<void> check_apply(const ProveFlags& flags) {
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(flags.device));
  return target.trust == nullptr ? Result<void>() : target.trust->check_kept();
}

// Stores the report's results in the trust of this device.
Result<Applied> apply(const ProveFlags& flags, const ProofReport& report) {
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(flags.device));
  if (target.trust == nullptr)
    return error(ErrorCode::invalid_argument, "--device {}: nothing is stored for it; name an NPU", flags.device);
  SK_TRY(runtime::check_made_here(report, target.trust->file().device));
  SK_TRY_ASSIGN(std::vector<runtime::TrustEntry> entries, runtime::believed_entries(report));
  Applied out{.count = entries.size(), .refuted = {}};
  SK_TRY_ASSIGN(out.refuted, target.trust->add_kept(std::move(entries)));
  out.count -= out.refuted.size();
  return out;
}

Result<void> read(const ProveFlags& flags, Outcome& outcome) {
  SK_TRY_ASSIGN(const ProofReport report, read_report(flags.read));
  Applied applied;
  if (flags.apply) SK_TRY_INTO(applied, apply(flags, report));
  outcome.begin();
  return show(flags, report, applied);
}

bool has_failed(const ProofReport& report) {
  return std::ranges::any_of(report.steps, [](const ProofStep& step) {
    return step.outcome == ProofOutcome::failed ||
           (step.kind == ProofKind::operation && runtime::is_refuted(step.outcome));
  });
}

Result<void> prove(const ProveFlags& flags, Outcome& outcome) {
  const OrderlyEnd end;
  ProofReport report;
  std::error_code failure;
  if (!flags.output.empty() && std::filesystem::exists(flags.output, failure))
    SK_TRY_INTO(report, read_report(flags.output));
  SK_TRY_ASSIGN(const runtime::NamedCore core, runtime::find_core(flags.device));
  if (flags.apply) SK_TRY(check_apply(flags));
  if (report.facts.empty()) report.facts = facts_of(core);
  {
    Progress progress("testing the device");
    runtime::ProveOptions options{.device = core.name, .risky = flags.risky, .serial = flags.full};
    if (const auto boot = read_file_start("/proc/sys/kernel/random/boot_id", 64); boot.ok())
      options.boot = runtime::hash_text(*boot);
    options.say = [&](const std::string& what) { progress.say(what); };
    options.keep = [&](const ProofReport& now) -> Result<void> {
      SK_TRY(write_report(flags.output, now));
      outcome.begin();
      return {};
    };
    SK_TRY(runtime::prove(options, report));
  }
  Applied applied;
  if (flags.apply) SK_TRY_INTO(applied, apply(flags, report));
  SK_TRY(show(flags, report, applied));
  outcome.exit_code = has_failed(report) || !runtime::is_whole(report) ? kFailed : kFine;
  return {};
}

}  // namespace

void add_prove(CommandLine& app, Outcome& outcome) {
  auto flags = std::make_shared<ProveFlags>();
  const Verb verb =
      app.verb("prove",
               "Test on this machine's NPU what no recorded job shows: a probe of each assumption, then a self-test,\n"
               "each compared with the CPU. Writes a report to share (docs/prove.md); --read prints a report.\n"
               "Example: skillet prove -o report.zip");
  verb.option("--device", flags->device, "which NPU: npu, /dev/..., etnaviv0, sim:CHIP").shows_default();
  const auto output =
      verb.option("-o,--output", flags->output,
                  "the report, .zip or .json, written before and after each step; an existing report is continued");
  verb.option("--read", flags->read, "print a report: which simulated candidate this silicon is like").excludes(output);
  verb.flag("--risky", flags->risky, "also run steps that may hang the NPU or the machine, and those that hung before");
  verb.flag("--apply", flags->apply, "add the results to the trust store of this device");
  verb.flag("--full", flags->full, "write the serial number itself into the report, not its hash");
  verb.flag("--json", flags->json, "machine-readable output");
  verb.runs(
      [flags, &outcome] { outcome.finish(flags->read.empty() ? prove(*flags, outcome) : read(*flags, outcome)); });
}

}  // namespace skillet::tools
