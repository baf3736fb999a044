// `skillet doctor`: checks if a working NPU is present, and if not, what to do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "npu/driver.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/verbs.h"
#include "tools/machine/diagnose.h"
#include "tools/machine/self_test.h"
#include "tools/machine/trust_summary.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string root;
  bool json = false, all = false;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> ready;  // NPUs that passed the self-test: values for --device
  // The same for simulated chips, with their findings; `sold`: those of them that are on boards to buy.
  std::vector<std::string> simulated, sold;
  std::vector<Finding> simulated_findings;
};

// Detaches the trust: self-tests must not change its file.
Result<runtime::Target> open_to_test(const std::string& device) {
  auto target = runtime::open_target(device);
  if (target.ok() && target->trust != nullptr) target->trust->detach();
  return target;
}

// Adds the result of a self-test; true: it passed.
bool test_device(const Result<runtime::Target>& target, const std::string& device, const std::string& title,
                 std::vector<Finding>& findings) {
  const auto tested = target.ok() ? self_test(*target) : Result<SelfTest>(target.error());
  if (!tested.ok() && target.ok() && target->simulated && tested.error().code == ErrorCode::unsupported) {
    findings.push_back(
        {"not-tested", Severity::note, fmt::format("{} ({}): {}", device, title, tested.error().message), "", device});
    return false;
  }
  if (!tested.ok()) {
    findings.push_back({"self-test-failed", Severity::problem,
                        fmt::format("{} ({}) fails the self-test: {}", device, title, tested.error().message),
                        "do not use it; please report this, with the output of dmesg", device});
    return false;
  }
  findings.push_back({"self-test", Severity::fine,
                      fmt::format("{} ({}) computes a {} like the CPU: {:.1f} ms to compile and load, {:.2f} ms to run",
                                  device, title, tested->what, tested->create_ms, tested->run_ms),
                      "", device});
  return true;
}

// Adds findings on the device's trust, at most three lines.
void report_trust(const Result<runtime::Target>& target, const std::string& device, std::vector<Finding>& findings) {
  if (!target.ok() || target->trust == nullptr) return;
  const TrustSummary known = summary_of_trust(*target);
  const size_t all = known.confirmed.size() + known.refuted.size() + known.open.size();
  const bool is_wrong = !known.refuted.empty() || known.refuted_operations != 0;
  std::string wrong = known.refuted.empty() ? "no assumption" : fmt::format("{}", fmt::join(known.refuted, ", "));
  if (known.refuted_operations != 0) wrong += ", " + counted(known.refuted_operations, "operation");
  findings.push_back(
      {"trust", is_wrong ? Severity::note : Severity::fine,
       fmt::format("{}: correct: {} of {}, and {} of networks\n"
                   "wrong: {}{}\n"
                   "not tried yet: {}{}",
                   device, known.confirmed.size(), counted(all, "assumption"), counted(known.programs, "part"), wrong,
                   is_wrong ? " (skillet trust shows why; operations that depend on it run on the CPU)" : "",
                   known.open.size(),
                   known.open.empty() ? "" : "; each is compared with the CPU when a network first needs it"),
       "", device});
}

// Ignores chips without a simulator: no problem of this machine.
void test_simulated(Report& report) {
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      const std::string device = "sim:" + chip.name;
      const auto target = open_to_test(device);
      if (!target.ok() || !test_device(target, device, chip.title, report.simulated_findings)) continue;
      report.simulated.push_back(device);
      if (chip.is_sold) report.sold.push_back(device);
    }
  }
}

Report examine(const Options& options) {
  const MachineFacts facts = gather_facts(options.root);
  Report report{.findings = diagnose(facts)};
  std::string last_node;
  for (const runtime::FoundNpu& npu : runtime::identify(facts.nodes).npus) {
    const std::string& node = npu.core.info.node;
    const std::string device = node == last_node ? npu.name : node;  // a node's name selects its first core
    last_node = node;
    const auto target = open_to_test(device);
    std::vector<Finding> trust;
    report_trust(target, device, trust);
    // Chips with unproven jobs run on silicon only with their owner's consent.
    if ((npu.chip.unproven.empty() || facts.takes_unproven) &&
        test_device(target, device, npu.chip.title, report.findings))
      report.ready.push_back(device);
    report.findings.insert(report.findings.end(), trust.begin(), trust.end());
  }
  test_simulated(report);
  return report;
}

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::fine: return "fine";
    case Severity::note: return "note";
    case Severity::problem: return "problem";
  }
  return "?";
}

std::string list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// The result in one line: the NPUs, or what there is instead.
std::string verdict(const Report& report) {
  if (!report.ready.empty()) return fmt::format("Ready: {}. Try: skillet run MODEL --device auto", list(report.ready));
  const bool has_problem = std::ranges::any_of(report.findings, [](const Finding& one) { return !one.fix.empty(); });
  std::string out = "No NPU is ready here: networks run on the CPU";
  if (!report.simulated.empty())
    out += fmt::format(", or on a simulated chip (--device {})",
                       report.sold.empty() ? report.simulated[0] : report.sold[0]);
  return out + (has_problem ? ". What is missing:" : ".");
}

void print_finding(const Finding& finding) {
  constexpr size_t kIndent = 9;
  std::string_view rest = finding.what;
  std::string first = fmt::format("{:<8} ", name_of(finding.severity));
  while (!rest.empty()) {  // ids of cores are on lines of their own
    const size_t end = std::min(rest.find('\n'), rest.size());
    out("{}\n", wrapped(first + std::string(rest.substr(0, end)), kIndent));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    first.assign(kIndent, ' ');
  }
  if (!finding.fix.empty()) out("{}\n", wrapped(std::string(kIndent, ' ') + "fix: " + finding.fix, kIndent + 5));
}

// One line for all simulated chips, or with --all each one.
void print_simulated(const Report& report, bool all) {
  for (const Finding& finding : report.simulated_findings)
    if (all || finding.severity == Severity::problem) print_finding(finding);
  const std::vector<std::string>& shown = report.sold.empty() ? report.simulated : report.sold;
  if (all || shown.empty()) return;
  const size_t others = report.simulated.size() - shown.size();
  print_finding({"self-test", Severity::fine,
                 fmt::format("simulated chips compute like the CPU: {}{}", list(shown),
                             others == 0 ? "" : fmt::format(", and {} others (--all)", others)),
                 ""});
}

void print_text(const Report& report, bool all) {
  out("{}\n\n", wrapped(verdict(report), 2));
  for (const Finding& finding : report.findings) print_finding(finding);
  print_simulated(report, all);
}

void print_json(const Report& report) {
  nlohmann::json findings = nlohmann::json::array();
  std::vector<Finding> all = report.findings;
  all.insert(all.end(), report.simulated_findings.begin(), report.simulated_findings.end());
  for (const Finding& one : all) {
    findings.push_back({{"id", one.id}, {"severity", name_of(one.severity)}, {"what", one.what}, {"fix", one.fix}});
    if (!one.device.empty()) findings.back()["device"] = one.device;
  }
  out_report({{"findings", findings}, {"ready", report.ready}, {"simulated", report.simulated}});
}

}  // namespace

void add_doctor(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("doctor", "Look for an NPU, test it, and report what is missing and how to fix it.");
  verb.flag("--all", options->all, "a line for each simulated chip too");
  verb.flag("--json", options->json, "machine-readable output, of all");
  verb.option("--root", options->root, "read /proc, /sys, /dev and /lib below this folder").hidden();
  verb.runs([options, &outcome] {
    const OrderlyEnd end;
    const Report report = examine(*options);
    if (options->json)
      print_json(report);
    else
      print_text(report, options->all);
    outcome.exit_code = report.ready.empty() ? kFailed : kFine;
  });
}

}  // namespace skillet::tools
