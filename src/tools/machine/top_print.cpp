#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tools/machine/top.h"
#include "tools/show/output.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

using Value = std::optional<double>;

std::string shown(const Value& value, fmt::format_string<const double&> format) {
  return value ? fmt::format(format, *value) : "-";
}
std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

// The numbers come from other processes and may be of any size.
uint64_t whole(double value) {
  return value < 1e18 ? static_cast<uint64_t>(value) : uint64_t{1'000'000'000'000'000'000};
}

std::string models_of(const ProcessUse& use) { return fmt::format("{}", fmt::join(use.models, ", ")); }

std::string busy_of(const TopDevice& one) {
  const std::string percent = shown(one.busy_percent, "{:.0f} %");
  return one.cores.value_or(1) > 1 ? fmt::format("{} of {} cores", percent, *one.cores) : percent;
}

std::string print_devices(const TopView& view) {
  TextTable table({"device", "kind", "chip", "clock", "temperature", "powered", "busy"});
  for (const TopDevice& one : view.devices)
    if (one.kind != NpuKind::simulated)
      table.add({one.device, std::string(name_of(one.kind)), or_dash(one.chip), shown(one.state.mhz, "{:.0f} MHz"),
                 shown(one.state.celsius, "{:.0f} C"), shown(one.powered_percent, "{:.0f} %"), busy_of(one)});
  return table.empty() ? "No NPU here (skillet doctor names what is missing)\n" : table.print();
}

std::string print_uses(const TopView& view) {
  TextTable table({"device", "pid", "process", "jobs/s", "busy", "memory", "jobs", "model"});
  for (const TopDevice& device : view.devices)
    for (const TopUse& use : device.uses)
      table.add({device.device, std::to_string(use.now.process), use.now.process_name, shown(use.jobs_per_s, "{:.1f}"),
                 shown(use.busy_percent, "{:.0f} %"), use.now.bytes ? print_bytes(whole(*use.now.bytes)) : "-",
                 use.now.jobs ? std::to_string(*use.now.jobs) : "-", models_of(use.now)});
  return table.empty() ? "No process uses an NPU, real or simulated\n" : table.print_wrapped();
}

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json json_of(const TopUse& use) {
  const ProcessUse& now = use.now;
  return {{"pid", now.process},
          {"process", now.process_name},
          {"models", now.models},
          {"jobs_submitted", or_null(now.submitted)},
          {"jobs", or_null(now.jobs)},
          {"jobs_per_s", or_null(use.jobs_per_s)},
          {"busy_ms", now.busy_ns ? nlohmann::json(*now.busy_ns / 1e6) : nlohmann::json()},
          {"busy_percent", or_null(use.busy_percent)},
          {"memory_bytes", now.bytes ? nlohmann::json(whole(*now.bytes)) : nlohmann::json()},
          {"by_kernel", now.kernel_says_busy}};
}

constexpr std::string_view kProcessInfo = "process_info";

// One metric: its name without "skillet_npu_", and its value for a device or for one use of a device.
struct Metric {
  std::string_view name, type, help;
  std::function<Value(const TopDevice&)> of_device;
  std::function<Value(const ProcessUse&)> of_use;
};

Value scaled(const Value& value, double by) { return value ? Value(*value * by) : value; }

const std::vector<Metric>& metrics() {
  static const auto& kMetrics = *new std::vector<Metric>{
      {"info", "gauge", "An NPU, real, virtual or simulated; always 1.", [](const TopDevice&) { return Value(1); }, {}},
      {"clock_hertz", "gauge", "Clock.", [](const TopDevice& one) { return scaled(one.state.mhz, 1e6); }, {}},
      {"temperature_celsius", "gauge", "Temperature.", [](const TopDevice& one) { return one.state.celsius; }, {}},
      {"powered_seconds_total",
       "counter",
       "Time for which the kernel kept it powered.",
       [](const TopDevice& one) { return scaled(one.state.powered_ms, 1e-3); },
       {}},
      {"cores",
       "gauge",
       "Cores: rates of busy seconds of all processes together are this at most.",
       [](const TopDevice& one) { return one.cores ? Value(static_cast<double>(*one.cores)) : Value(); },
       {}},
      {kProcessInfo,
       "gauge",
       "A process that uses it, and its models; always 1.",
       {},
       [](const ProcessUse&) { return Value(1); }},
      {"jobs_total",
       "counter",
       "Jobs that have finished, of a process.",
       {},
       [](const ProcessUse& use) { return use.jobs ? Value(static_cast<double>(*use.jobs)) : Value(); }},
      {"busy_seconds_total",
       "counter",
       "Time for which jobs of a process ran.",
       {},
       [](const ProcessUse& use) { return scaled(use.busy_ns, 1e-9); }},
      {"memory_bytes", "gauge", "Buffers of a process.", {}, [](const ProcessUse& use) { return use.bytes; }},
  };
  return kMetrics;
}

// NAME="VALUE", escaped for Prometheus.
std::string label(std::string_view name, std::string_view value) {
  std::string out = fmt::format("{}=\"", name);
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string labels(const TopDevice& device) {
  return fmt::format("{},{},{}", label("device", device.device), label("kind", name_of(device.kind)),
                     label("chip", device.chip));
}

// `with_models` is false for counters: each loaded model would change the label, and so start a new counter.
std::string labels(const TopDevice& device, const ProcessUse& use, bool with_models) {
  const std::string out = fmt::format("{},{},{}", labels(device), label("pid", std::to_string(use.process)),
                                      label("process", use.process_name));
  return with_models ? fmt::format("{},{}", out, label("model", models_of(use))) : out;
}

void add_line(std::string& out, const Metric& metric, const std::string& labels, const Value& value) {
  if (value) out += fmt::format("skillet_npu_{}{{{}}} {}\n", metric.name, labels, *value);
}

}  // namespace

std::string print_text(const TopView& view) {
  std::string out = print_devices(view) + "\n" + print_uses(view);
  if (::geteuid() != 0) out += "\nOnly processes of this user are seen; root sees all\n";
  return out;
}

std::string print_json(const TopView& view) {
  nlohmann::json devices = nlohmann::json::array();
  for (const TopDevice& one : view.devices) {
    nlohmann::json uses = nlohmann::json::array();
    for (const TopUse& use : one.uses) uses.push_back(json_of(use));
    devices.push_back({{"device", one.device},
                       {"kind", name_of(one.kind)},
                       {"chip", one.chip},
                       {"kernel_driver", one.kernel_driver},
                       {"clock_mhz", or_null(one.state.mhz)},
                       {"temperature_celsius", or_null(one.state.celsius)},
                       {"powered_percent", or_null(one.powered_percent)},
                       {"cores", or_null(one.cores)},
                       {"busy_percent", or_null(one.busy_percent)},
                       {"processes", uses}});
  }
  return report_text({{"seconds", view.seconds}, {"sees_all_users", ::geteuid() == 0}, {"devices", devices}});
}

std::string print_prometheus(const TopView& view) {
  std::string out;
  for (const Metric& metric : metrics()) {
    out +=
        fmt::format("# HELP skillet_npu_{0} {1}\n# TYPE skillet_npu_{0} {2}\n", metric.name, metric.help, metric.type);
    for (const TopDevice& device : view.devices) {
      if (metric.of_device) add_line(out, metric, labels(device), metric.of_device(device));
      for (const TopUse& use : device.uses)
        if (metric.of_use)
          add_line(out, metric, labels(device, use.now, metric.name == kProcessInfo), metric.of_use(use.now));
    }
  }
  return out;
}

}  // namespace skillet::tools
