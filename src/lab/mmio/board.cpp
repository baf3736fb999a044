#include "lab/mmio/board.h"

#include <fmt/format.h>

#include <algorithm>

#define MMIO(kernel)                                                             \
  namespace skillet::mmio::kernel {                                              \
  Result<std::optional<std::vector<Placed>>> place(const PlaceOptions& options); \
  }
#include "lab/mmio/kernels.inc"
#undef MMIO

namespace skillet::mmio {
namespace {

constexpr PlaceChip kKernels[] = {
#define MMIO(kernel) kernel::place,
#include "lab/mmio/kernels.inc"
#undef MMIO
};
constexpr uint16_t kMostLines = 16;
constexpr uint64_t kStride = 0x100000;
constexpr double kClockMhz = 800;                               // in the device tree, if no clock is given
constexpr double kLeastClockMhz = 0.001, kMostClockMhz = 4294;  // its cell in Hz holds no more

WatchOptions watch_of(const BoardOptions& options, uint16_t line) {
  const std::string number = line == 0 ? "" : fmt::format(".{}", line + 1);
  return {.record = options.record.empty() ? "" : options.record + number, .clock_mhz = options.clock_mhz};
}

// "a311d,quirk=x+y": the name and the quirks.
Result<std::vector<Placed>> place(std::string_view text, PlaceOptions options) {
  options.chip = text.substr(0, text.find(','));
  if (options.chip.size() < text.size()) {
    constexpr std::string_view kKey = ",quirk=";
    options.quirks = text.substr(options.chip.size());
    if (!options.quirks.starts_with(kKey))
      return error(ErrorCode::invalid_argument, "chip '{}': only ,quirk=NAME[+NAME...] can follow the name", text);
    options.quirks.remove_prefix(kKey.size());
    const std::string names = fmt::format("+{}+", options.quirks);
    if (names.find("++") != std::string::npos)
      return error(ErrorCode::invalid_argument, "chip '{}': must be NAME,quirk=NAME[+NAME...]", text);
  }
  for (const PlaceChip one : kKernels) {
    SK_TRY_ASSIGN(auto placed, one(options));
    if (placed) return std::move(*placed);
  }
  return error(ErrorCode::invalid_argument,
               "chip '{}': no emulated Linux driver drives it; `skillet devices --all` lists chips", options.chip);
}

}  // namespace

Result<std::unique_ptr<Board>> Board::create(const std::string& folder, const BoardOptions& options) {
  if (options.clock_mhz != 0 && !(options.clock_mhz >= kLeastClockMhz && options.clock_mhz <= kMostClockMhz))
    return error(ErrorCode::invalid_argument, "--clock {}: must be from {} to {} MHz; a device tree holds no more",
                 options.clock_mhz, kLeastClockMhz, kMostClockMhz);
  if (options.cores > kMostLines)
    return error(ErrorCode::invalid_argument, "--cores {}: must be from 1 to {}", options.cores, kMostLines);
  auto board = std::unique_ptr<Board>(new Board);
  SK_TRY_ASSIGN(board->server_, Server::create(folder, kMostLines));
  board->folder_ = folder;
  board->clock_mhz_ = options.clock_mhz != 0 ? options.clock_mhz : kClockMhz;
  Server& server = *board->server_;
  if (options.traces) server.bus().log_to([](std::string_view line) { fmt::print(stderr, "{}\n", line); });
  for (const std::string& chip : options.chips) {
    const auto at = static_cast<uint16_t>(board->placed_.size());
    SK_TRY_ASSIGN(std::vector<Placed> placed,
                  place(chip, {.chip = {},
                               .quirks = {},
                               .faults = options.faults,
                               .most_cores = options.cores,
                               .watch = [&](uint16_t line) { return watch_of(options, line); },
                               .address = Bus::kAddress + at * kStride,
                               .stride = kStride,
                               .line = at,
                               .surroundings = [&](uint16_t line) { return server.surroundings(line); }}));
    for (const Placed& one : placed) {
      const auto others = std::ranges::count(board->placed_, one.driver, &Placed::driver);
      if (one.most_of_driver != 0 && others >= one.most_of_driver)
        return error(ErrorCode::invalid_argument, "--chip: Linux's {} takes {} cores at most", one.driver,
                     one.most_of_driver);
    }
    if (at + placed.size() > kMostLines)
      return error(ErrorCode::invalid_argument,
                   "--chip: a board has at most {} cores; --cores takes fewer of each chip", kMostLines);
    for (Placed& one : placed) {
      one.window.device = one.device.get();
      server.bus().add(one.window);
      board->placed_.push_back(std::move(one));
    }
  }
  return board;
}

std::string Board::device_tree() const {
  std::string nodes;
  for (const Placed& one : placed_) nodes += one.nodes;
  return fmt::format(R"(/dts-v1/;
/ {{
  #address-cells = <2>;
  #size-cells = <2>;
  compatible = "skillet,board";
  clock: clock {{
    compatible = "fixed-clock";
    #clock-cells = <0>;
    clock-frequency = <{4}>;
  }};
  virtio-lines {{
    compatible = "virtio,uml";
    virtio-device-id = <{0}>;
    socket-path = "{1}/lines";
    lines: gpio {{
      compatible = "virtio,device{0:x}";
      gpio-controller;
      #gpio-cells = <2>;
      interrupt-controller;
      #interrupt-cells = <2>;
    }};
  }};
  virtio-bus {{
    compatible = "virtio,uml";
    virtio-device-id = <{2}>;
    #address-cells = <2>;
    #size-cells = <2>;
    ranges;
    socket-path = "{1}/bus";
    soc {{
      compatible = "virtio,device{2:x}", "simple-bus";
      #address-cells = <2>;
      #size-cells = <2>;
      ranges;
{3}    }};
  }};
}};
)",
                     Lines::kDeviceId, folder_, Bus::kDeviceId, nodes, static_cast<uint64_t>(clock_mhz_ * 1e6));
}

std::string Board::notes() const {
  std::string text;
  for (const Placed& one : placed_) {
    if (!one.note.empty()) text += fmt::format("{}: {}\n", one.window.name, one.note);
  }
  return text;
}

std::string Board::summary() const {
  std::string text;
  for (const Placed& one : placed_) text += fmt::format("{}: {}\n", one.window.name, one.device->summary());
  const Bus& bus = server_->bus();
  return text + fmt::format("bus: {} reads, {} of them nested, {} writes, {} interrupts\n", bus.reads(),
                            bus.nested_reads(), bus.writes(), server_->lines().interrupts());
}

}  // namespace skillet::mmio
