#include "lab/mmio/board.h"

#include <fmt/format.h>

#include "lab/mmio/place.h"

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

// "a311d,quirk=x+y": the name and the quirks.
Result<std::vector<Placed>> place(std::string_view text, PlaceOptions options) {
  options.chip = text.substr(0, text.find(','));
  std::vector<std::string_view> quirks;
  if (options.chip.size() < text.size()) {
    constexpr std::string_view kKey = ",quirk=";
    const std::string_view rest = text.substr(options.chip.size());
    if (!rest.starts_with(kKey))
      return error(ErrorCode::invalid_argument, "chip '{}': after the name only ,quirk=NAME[+NAME...] can stand", text);
    for (size_t at = kKey.size(), plus = 0; plus != std::string_view::npos; at = plus + 1) {
      plus = rest.find('+', at);
      quirks.push_back(rest.substr(at, plus - at));
    }
  }
  options.quirks = quirks;
  for (const PlaceChip one : kKernels) {
    SK_TRY_ASSIGN(auto placed, one(options));
    if (placed) return std::move(*placed);
  }
  return error(
      ErrorCode::invalid_argument,
      "chip '{}': no kernel driver of Linux that is modelled here drives it; `skillet devices --all` lists chips",
      options.chip);
}

}  // namespace

Result<std::unique_ptr<Board>> Board::create(const std::string& folder, const BoardOptions& options) {
  auto board = std::unique_ptr<Board>(new Board);
  SK_TRY_ASSIGN(board->server_, Server::create(folder, kMostLines));
  board->folder_ = folder;
  Server& server = *board->server_;
  if (options.traces) server.bus().log_to([](std::string_view line) { fmt::print(stderr, "{}\n", line); });
  for (const std::string& chip : options.chips) {
    const auto at = static_cast<uint16_t>(board->devices_.size());
    SK_TRY_ASSIGN(std::vector<Placed> placed,
                  place(chip, {.chip = {},
                               .quirks = {},
                               .faults = options.faults,
                               .most_cores = options.cores,
                               .address = Bus::kAddress + at * kStride,
                               .stride = kStride,
                               .line = at,
                               .surroundings = [&](uint16_t line) { return server.surroundings(line); }}));
    if (at + placed.size() > kMostLines)
      return error(ErrorCode::invalid_argument, "a board has at most {} cores", kMostLines);
    for (Placed& one : placed) {
      for (Window& window : one.windows) {
        window.device = one.device.get();
        server.bus().add(window);
      }
      board->nodes_ += one.nodes;
      board->names_.push_back(std::move(one.name));
      board->devices_.push_back(std::move(one.device));
    }
  }
  return board;
}

std::string Board::device_tree() const {
  return fmt::format(R"(/dts-v1/;
/ {{
  #address-cells = <2>;
  #size-cells = <2>;
  compatible = "skillet,board";
  clock: clock {{
    compatible = "fixed-clock";
    #clock-cells = <0>;
    clock-frequency = <800000000>;
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
                     Lines::kDeviceId, folder_, Bus::kDeviceId, nodes_);
}

std::string Board::summary() const {
  std::string text;
  for (size_t i = 0; i < devices_.size(); ++i) text += fmt::format("{}: {}\n", names_[i], devices_[i]->summary());
  const Bus& bus = server_->bus();
  return text + fmt::format("bus: {} reads, {} writes, {} interrupts\n", bus.reads(), bus.writes(),
                            server_->lines().interrupts());
}

}  // namespace skillet::mmio
