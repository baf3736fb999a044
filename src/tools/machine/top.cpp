// `skillet top`: shows what the NPU does, and for which processes.
#include "tools/machine/top.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>

#include "base/stop.h"
#include "kernels/api/kernels.h"
#include "runtime/device_context.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/verbs.h"
#include "tools/show/terminal.h"

namespace skillet::tools {
namespace {

constexpr std::chrono::seconds kInterval{1};

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The counters are untrusted: a later one may be smaller.
template <typename T>
std::optional<double> rise(const std::optional<T>& before, const std::optional<T>& now) {
  if (!before || !now) return std::nullopt;
  return std::max(0.0, static_cast<double>(*now) - static_cast<double>(*before));
}

// A node may have several chips, and several processes may have virtual nodes at the same path.
bool is_same(const TopDevice& one, const std::string& device, NpuKind kind, const std::string& chip) {
  const bool is_that_chip = one.chip.empty() || chip.empty() || one.chip == chip;
  return one.device == device && one.kind == kind && is_that_chip;
}

const TopDevice* find(const TopView& view, const TopDevice& device) {
  const auto found = std::ranges::find_if(
      view.devices, [&](const TopDevice& one) { return is_same(one, device.device, device.kind, device.chip); });
  return found == view.devices.end() ? nullptr : &*found;
}

// Processes are read one after another, on a busy machine at very different times.
double seconds_between(const ProcessUse& before, const ProcessUse& now, double otherwise) {
  return before.read_at_ns != 0 && now.read_at_ns > before.read_at_ns
             ? static_cast<double>(now.read_at_ns - before.read_at_ns) * 1e-9
             : otherwise;
}

// Open files of a process share the cores.
size_t most_at_once(const ProcessUse& use) {
  return use.kernel_says_busy ? use.cores : std::clamp<size_t>(use.files, 1, std::max<size_t>(use.cores, 1));
}

void compare(TopUse& use, const ProcessUse& before, double view_seconds) {
  constexpr double kPercentOfNs = 1e-7;
  const double seconds = seconds_between(before, use.now, view_seconds);
  if (const auto jobs = rise(before.jobs, use.now.jobs)) use.jobs_per_s = *jobs / seconds;
  const double most = 100.0 * static_cast<double>(most_at_once(use.now));
  if (const auto ns = rise(before.busy_ns, use.now.busy_ns))
    use.busy_percent = std::min(most, *ns * kPercentOfNs / seconds);
}

// Does not include cores that only processes without Skillet use.
void count_cores(TopDevice& device) {
  if (device.kind != NpuKind::npu) return;
  for (const TopUse& use : device.uses)
    if (use.now.busy_ns) device.cores = std::max(device.cores.value_or(1), use.now.cores);
}

void add_up(TopDevice& device) {
  if (device.kind != NpuKind::npu || (!device.cores && !device.uses.empty())) return;
  double percent = 0;
  for (const TopUse& use : device.uses) percent += use.busy_percent.value_or(0);
  device.busy_percent = std::min(100.0, percent / static_cast<double>(device.cores.value_or(1)));
}

}  // namespace

Top::Top(std::string root) : root_(std::move(root)) {
  for (const runtime::FoundNpu& npu : runtime::find_npus(root_).npus) {
    const kernels::KernelDriver* const driver = kernels::find_kernel_driver(npu.core.info.kernel_driver);
    Known known{npu.core.info.node, npu.chip.name, npu.core.info.kernel_driver,
                driver == nullptr ? "" : std::string(driver->platform_driver)};
    const auto is_it = [&](const Known& one) { return one.node == known.node && one.chip == known.chip; };
    if (std::ranges::none_of(npus_, is_it)) npus_.push_back(std::move(known));
  }
}

TopDevice& Top::device_of(TopView& view, const ProcessUse& use) const {
  for (TopDevice& one : view.devices)
    if (is_same(one, use.device, use.kind, use.chip)) return one;
  TopDevice& device = view.devices.emplace_back();
  device.device = use.device;
  device.kind = use.kind;
  if (use.kind == NpuKind::npu) device.state = npu_state(use.device, "", root_);
  return device;
}

TopView Top::look() {
  TopView view;
  const double now = now_s();
  std::set<std::string> names;
  for (const Known& known : npus_) {
    names.insert(known.node);
    const NpuState state = npu_state(known.node, known.platform_driver, root_);
    view.devices.push_back({.device = known.node,
                            .chip = known.chip,
                            .kernel_driver = known.kernel_driver,
                            .kind = state.is_virtual ? NpuKind::virtual_node : NpuKind::npu,
                            .state = state});
  }
  const size_t here = view.devices.size();
  for (ProcessUse& use : npu_uses(names, root_)) {
    TopDevice& device = device_of(view, use);
    if (device.chip.empty()) device.chip = use.chip;
    device.uses.push_back({.now = std::move(use)});
  }
  for (TopDevice& device : view.devices) count_cores(device);
  std::sort(
      view.devices.begin() + static_cast<std::ptrdiff_t>(here), view.devices.end(),
      [](const TopDevice& a, const TopDevice& b) { return std::tie(a.device, a.chip) < std::tie(b.device, b.chip); });
  view.seconds = last_s_ == 0 ? 0 : now - last_s_;
  if (view.seconds > 0) compare(view);
  last_s_ = now;
  last_ = view;
  return view;
}

void Top::compare(TopView& view) const {
  for (TopDevice& device : view.devices) {
    const TopDevice* const before = find(last_, device);
    if (before == nullptr) continue;
    if (const auto ms = rise(before->state.powered_ms, device.state.powered_ms))
      device.powered_percent = std::min(100.0, *ms / 10 / view.seconds);
    for (TopUse& use : device.uses) {
      const auto same =
          std::ranges::find(before->uses, use.now.process, [](const TopUse& one) { return one.now.process; });
      if (same != before->uses.end()) tools::compare(use, same->now, view.seconds);
    }
    add_up(device);
    std::ranges::stable_sort(device.uses, std::greater(),
                             [](const TopUse& one) { return one.busy_percent.value_or(-1); });
  }
}

namespace {

// Reads single keys without echo; longer lines are truncated.
class Keys {
 public:
  Keys() : is_terminal_(::isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    out_drawing("\x1b[?7l\x1b[2J");
    if (!is_terminal_) return;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
  }
  ~Keys() {
    out_drawing("\x1b[?7h");
    flush_output();
    if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // True: q or Ctrl-C, or the input is closed.
  bool asks_to_end(std::chrono::milliseconds patience) const {
    constexpr char kCtrlC = 3;
    pollfd input{.fd = is_terminal_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, static_cast<int>(patience.count())) <= 0) return false;
    char key = 'q';
    return ::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == kCtrlC;
  }

 private:
  termios before_{};
  const bool is_terminal_;
};

std::string first_lines(const std::string& text, int count) {
  size_t end = 0;
  while (count-- > 0 && end != std::string::npos) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

void show_until_asked(Top& top) {
  const Keys keys;
  TopView view = top.look();
  do {
    const std::string text = print_text(view) + "\nq: end";
    out_drawing("\x1b[H\x1b[J");
    out(first_lines(text, terminal_size().rows - 1));
    flush_output();
    if (keys.asks_to_end(kInterval)) return;
    view = top.look();
  } while (requested_stop() == 0 && !output_is_lost());
}

struct Options {
  std::string root;
  bool json = false, once = false, prometheus = false;
};

void run(const Options& options) {
  const OrderlyEnd end;
  Top top(options.root);
  if (options.prometheus) return out(print_prometheus(top.look()));
  if (!options.json && !options.once && ::isatty(STDOUT_FILENO) != 0) return show_until_asked(top);
  top.look();
  std::this_thread::sleep_for(kInterval);
  const TopView view = top.look();
  out(options.json ? print_json(view) : print_text(view));
}

}  // namespace

void add_top(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("top",
               "Show what the NPUs of this machine do, and for which processes: jobs, busy time, memory,\n"
               "clock, temperature. On a terminal every second until q; else once, over one second.");
  const Option once = verb.flag("--once", options->once, "once, over one second, also on a terminal");
  const Option json = verb.flag("--json", options->json, "machine-readable output, over one second");
  verb.flag("--prometheus", options->prometheus, "counters for the textfile collector of Prometheus' node exporter")
      .excludes(json)
      .excludes(once);
  verb.option("--root", options->root, "read /proc, /sys and /dev below this folder").hidden();
  verb.runs([options, &outcome] {
    outcome.begin();
    run(*options);
  });
}

}  // namespace skillet::tools
