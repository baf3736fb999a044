// Coefficient writers on one core: bytes per second count the model's weights once.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "base/splitmix64.h"
#include "npus/vivante/compiler/weights.h"

namespace skillet::npus::vivante {
namespace {

constexpr int32_t kChannels = 512;

// Weights around the zero point, as in real models.
Bytes weights_of(int32_t elems, uint8_t zero_point) {
  SplitMix64 random(1);
  Bytes bytes(static_cast<size_t>(kChannels * elems));
  for (uint8_t& byte : bytes) {
    const uint64_t bits = random.next();
    const int32_t sum = static_cast<int32_t>(bits % 25) + static_cast<int32_t>(bits / 25 % 25) - 24;
    byte = static_cast<uint8_t>(std::clamp(zero_point + sum, 0, 255));
  }
  return bytes;
}

NnOperation operation(const Bytes& weights, int32_t kernel, uint8_t zero_point, SymbolMapChoice symbol_map) {
  NnOperation op{.symbol_map = symbol_map};
  op.kernels = {.output_channels = kChannels, .input_channels = kChannels, .height = kernel, .width = kernel};
  op.kernels.band = kChannels;
  op.kernels.zero_point = zero_point;
  op.kernels.weights = weights;
  op.kernels.biases.resize(kChannels);
  return op;
}

void write(benchmark::State& state, const hw::ChipRow& chip, int32_t kernel, SymbolMapChoice symbol_map) {
  constexpr uint8_t kZeroPoint = 120;
  const Bytes weights = weights_of(kChannels * kernel * kernel, kZeroPoint);
  const NnOperation op = operation(weights, kernel, kZeroPoint, symbol_map);
  const KernelSplit split = split_kernels(kChannels, chip.nn_cores, 1);
  size_t bytes = 0;
  for (auto _ : state) bytes = write_coefficients(chip, op, split).bytes.size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(weights.size()));
  state.counters["of_raw"] = static_cast<double>(bytes) / static_cast<double>(weights.size());
}

void add(const char* chip, SymbolMapChoice symbol_map) {
  for (const int32_t kernel : {1, 3}) {
    const std::string name = fmt::format("{} {}x{}{}", chip, kernel, kernel,
                                         symbol_map == SymbolMapChoice::smallest ? " smallest symbol map" : "");
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](auto& state) { write(state, *hw::find_chip(chip), kernel, symbol_map); });
  }
}

}  // namespace
}  // namespace skillet::npus::vivante

int main(int argc, char** argv) {
  using skillet::npus::vivante::SymbolMapChoice;
  benchmark::Initialize(&argc, argv);
  skillet::npus::vivante::add("a311d", SymbolMapChoice::recorded);
  skillet::npus::vivante::add("imx8mp", SymbolMapChoice::recorded);
  skillet::npus::vivante::add("imx8mp", SymbolMapChoice::smallest);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
