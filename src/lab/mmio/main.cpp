// skillet-npu-device: simulated NPUs as hardware for a Linux kernel that runs as a process (user-mode Linux):
// registers, interrupts and DMA over vhost-user. docs/kernel-ci.md
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "base/stop.h"
#include "lab/mmio/board.h"

namespace {

skillet::mmio::Server* running = nullptr;

int fail(const skillet::Error& error) {
  std::cerr << "skillet-npu-device: " << error.message << '\n';
  return 1;
}

int serve(const std::string& folder, const skillet::mmio::BoardOptions& options, const std::string& tree,
          uint32_t guests) {
  auto board = skillet::mmio::Board::create(folder, options);
  if (!board.ok()) return fail(board.error());
  if (!tree.empty()) {
    const std::string beside = tree + ".new";  // who waits for the file finds all of it
    std::FILE* const file = std::fopen(beside.c_str(), "w");
    const std::string text = (*board)->device_tree();
    const bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file == nullptr || std::fclose(file) != 0 || !is_written || std::rename(beside.c_str(), tree.c_str()) != 0)
      return fail(skillet::error(skillet::ErrorCode::io, "{}: cannot be written", tree));
  }
  running = &(*board)->server();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, [](int) { running->stop(); });
  std::signal(SIGPIPE, SIG_IGN);
  std::cerr << "listening in " << folder << '\n';
  const skillet::Result<void> done = (*board)->server().run(guests);
  std::cerr << (*board)->summary();
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
  app.add_option("--folder", folder, "where the sockets are made: bus and lines")->required();
  app.add_option("--device-tree", tree, "file for the source of the board's device tree");
  app.add_option("--cores", options.cores, "of each chip at most so many cores (default: all)");
  app.add_option("--fault", faults,
                 "KIND@JOB[,KIND@JOB...]: job JOB of each core, from 1 on, ends by hang, lost_interrupt, "
                 "spurious_interrupt, bus_error, page_fault or power_loss");
  app.add_option("--record", options.record,
                 "a capture of the jobs of the first device, as it reads them in the guest's memory; of the others: "
                 "FILE.2 and so on");
  app.add_option("--clock", options.clock_mhz,
                 "in MHz: a job takes as long as the chip is predicted to need at this clock")
      ->check(CLI::PositiveNumber);
  app.add_option("--guests", guests, "ends after so many guests (default: serves until SIGTERM)");
  app.add_flag("--trace", options.traces, "a line on standard error for each access to a register");
  CLI11_PARSE(app, count, arguments);
  auto parsed = skillet::mmio::Faults::parse(faults);
  if (!parsed.ok()) {
    std::cerr << "skillet-npu-device: " << parsed.error().message << '\n';
    return 2;
  }
  options.faults = std::move(*parsed);
  return serve(folder, options, tree, guests);
}
