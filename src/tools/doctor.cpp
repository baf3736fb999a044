// `skillet doctor`: is there an NPU that works, and if not, what to do.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "driver/driver.h"
#include "tools/diagnose.h"
#include "tools/orderly_end.h"
#include "tools/self_test.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string root;
  bool json = false;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> ready;      // NPUs that passed the self-test: what --device takes
  std::vector<std::string> simulated;  // the same for simulated chips
};

// Adds the outcome of a self-test; true when it passed.
bool test_device(const std::string& device, const std::string& title, Report& report) {
  auto target = runtime::open_target(device);
  const auto tested = target.ok() ? self_test(*target) : Result<SelfTest>(target.error());
  if (!tested.ok() && target.ok() && target->simulated && tested.error().code == ErrorCode::unsupported) {
    report.findings.push_back(
        {"not-tested", Severity::note, fmt::format("{} ({}): {}", device, title, tested.error().message), ""});
    return false;
  }
  if (!tested.ok()) {
    report.findings.push_back({"self-test-failed", Severity::problem,
                               fmt::format("{} ({}) fails the self-test: {}", device, title, tested.error().message),
                               "do not use it; please report this with the output of dmesg"});
    return false;
  }
  report.findings.push_back({"self-test", Severity::fine,
                             fmt::format("{} ({}) computes a {} as the CPU does: {:.1f} ms to compile and load, "
                                         "{:.2f} ms to run",
                                         device, title, tested->what, tested->create_ms, tested->run_ms),
                             ""});
  return true;
}

// A chip without a simulator is not a fault of this machine.
void test_simulated(Report& report) {
  for (const driver::Driver* driver : driver::drivers()) {
    for (const driver::Chip& chip : driver->chips()) {
      const std::string device = "sim:" + chip.name;
      if (!runtime::open_target(device).ok()) continue;
      if (test_device(device, chip.title, report)) report.simulated.push_back(device);
    }
  }
}

Report examine(const Options& options) {
  const MachineFacts facts = gather_facts(options.root);
  Report report{.findings = diagnose(facts), .ready = {}, .simulated = {}};
  for (const runtime::FoundNpu& npu : runtime::identify(facts.nodes).npus) {
    // What is unproven runs on silicon when its owner says so, not to see what happens.
    if ((npu.chip.unproven.empty() || facts.allows_unproven) && test_device(npu.core.info.node, npu.chip.title, report))
      report.ready.push_back(npu.core.info.node);
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

std::string verdict(const Report& report) {
  if (!report.ready.empty()) return fmt::format("Ready: {}. Try: skillet run MODEL --device auto", list(report.ready));
  std::string out = "No NPU is ready here: networks run on the CPU";
  if (!report.simulated.empty()) out += fmt::format(", or on a simulated chip (--device {})", list(report.simulated));
  return out + ".";
}

void print_text(const Report& report) {
  for (const Finding& finding : report.findings) {
    out("{:<8} {}\n", name_of(finding.severity), finding.what);
    if (!finding.fix.empty()) out("         fix: {}\n", finding.fix);
  }
  out("\n{}\n", verdict(report));
}

void print_json(const Report& report) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& one : report.findings)
    findings.push_back({{"id", one.id}, {"severity", name_of(one.severity)}, {"what", one.what}, {"fix", one.fix}});
  const nlohmann::json report_json = {{"findings", findings}, {"ready", report.ready}, {"simulated", report.simulated}};
  out_json(report_json);
}

}  // namespace

void add_doctor(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("doctor",
                             "Look for an NPU, test that it computes, and say what is missing and how to mend "
                             "it.");
  verb.flag("--json", options->json, "machine-readable output");
  verb.option("--root", options->root, "look at /proc, /sys, /dev and /lib below this folder").hidden();
  verb.runs([options, &outcome] {
    const OrderlyEnd end;
    const Report report = examine(*options);
    if (options->json)
      print_json(report);
    else
      print_text(report);
    outcome.exit_code = report.ready.empty() ? kFailed : kFine;
  });
}

}  // namespace skillet::tools
