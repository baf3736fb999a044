// skillet-npu-device: simulated NPUs as hardware for a Linux kernel that runs as a process (user-mode Linux):
// registers, interrupts and DMA over vhost-user. docs/kernel-ci.md
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <iostream>
#include <mutex>
#include <thread>

#include "base/stop.h"
#include "lab/mmio/board.h"
#include "lab/mmio/warn.h"

namespace {

using skillet::mmio::Server;

// Ends a server on a signal. A job that is being computed, or other work, gets some time; then the process ends without
// it. Created before other threads, so that they inherit the mask that blocks these signals.
class Ending {
 public:
  Ending() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void watch(Server& server) {
    thread_ = std::thread([this, &server] { wait(server); });
  }
  // Called when the server has ended.
  void over() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

 private:
  static constexpr auto kPatience = std::chrono::milliseconds(700);

  void wait(Server& server) {
    int signal = 0;
    sigwait(&signals_, &signal);
    std::unique_lock lock(mutex_);
    if (is_over_) return;
    skillet::request_stop(signal);
    server.stop();
    if (changed_.wait_for(lock, kPatience, [&] { return is_over_; })) return;
    server.unlink();
    constexpr std::string_view kText = "skillet-npu-device: ended while busy with a guest or a job\n";
    static_cast<void>(::write(STDERR_FILENO, kText.data(), kText.size()));
    ::_exit(1);
  }

  sigset_t signals_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

int fail(const skillet::Error& error) {
  std::cerr << "skillet-npu-device: " << error.message << '\n';
  return 1;
}

int serve(const std::string& folder, const skillet::mmio::BoardOptions& options, const std::string& tree,
          uint32_t guests) {
  Ending ending;
  auto board = skillet::mmio::Board::create(folder, options);
  if (!board.ok()) return fail(board.error());
  if (!tree.empty()) {
    const std::string beside = tree + ".new";  // renamed when complete, so that readers see the whole file
    std::FILE* const file = std::fopen(beside.c_str(), "w");
    const std::string text = (*board)->device_tree();
    const bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file == nullptr || std::fclose(file) != 0 || !is_written || std::rename(beside.c_str(), tree.c_str()) != 0)
      return fail(skillet::error(skillet::ErrorCode::io, "{}: cannot be written", tree));
  }
  ending.watch((*board)->server());
  std::signal(SIGPIPE, SIG_IGN);
  std::cerr << (*board)->notes() << "listening in " << folder << '\n';
  const skillet::Result<void> done = (*board)->server().run(guests);
  ending.over();
  std::cerr << (*board)->summary();
  if (const uint64_t unsaid = skillet::mmio::device_warnings().unsaid() + (*board)->server().unsaid_warnings();
      unsaid != 0)
    std::cerr << "skillet-npu-device: " << unsaid << " more warnings about guests were left out\n";
  return done.ok() ? 0 : fail(done.error());
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Simulated NPUs as hardware for a Linux kernel that runs as a process (user-mode Linux).");
  skillet::mmio::BoardOptions options;
  std::string folder, tree, faults;
  uint32_t guests = 0;
  app.add_option("--chip", options.chips,
                 "name of a chip, as skillet devices --all lists them; with ,quirk=NAME it differs from what its "
                 "compiler assumes. Several: several chips")
      ->required();
  app.add_option("--folder", folder, "folder for the sockets: bus and lines")->required();
  app.add_option("--device-tree", tree, "file for the source of the board's device tree");
  app.add_option("--cores", options.cores, "largest number of cores of each chip, up to 16 (default: all)")
      ->check(CLI::Range(1, 16));
  app.add_option("--fault", faults,
                 "KIND@JOB[,KIND@JOB...]: job JOB of each core, from 1 on, ends by hang, lost_interrupt, "
                 "spurious_interrupt, bus_error, page_fault or power_loss");
  app.add_option("--record", options.record,
                 "write a capture of the first device's jobs, as it reads them in the guest's memory; for the others "
                 "FILE.2 and so on");
  app.add_option("--clock", options.clock_mhz, "in MHz: a job takes its predicted time at this clock")
      ->check([](const std::string& text) { return text == "0" ? "must be more than 0" : ""; });
  app.add_option("--guests", guests, "end after this many guests (default: serve until SIGTERM)");
  app.add_flag("--trace", options.traces, "print a line on standard error for each register access");
  CLI11_PARSE(app, count, arguments);
  auto parsed = skillet::mmio::Faults::parse(faults);
  if (!parsed.ok()) {
    std::cerr << "skillet-npu-device: " << parsed.error().message << '\n';
    return 2;
  }
  options.faults = std::move(*parsed);
  return serve(folder, options, tree, guests);
}
