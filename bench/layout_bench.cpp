// Layout conversions against memcpy of equally many bytes, in one run. Bytes per second count the tensor once.
#include <benchmark/benchmark.h>

#include <cstring>

#include "program/layout.h"

namespace skillet::npu {
namespace {

constexpr ImageShape kShapes[] = {{.height = 224, .width = 224, .channels = 3},
                                  {.height = 112, .width = 112, .channels = 64},
                                  {.height = 28, .width = 28, .channels = 256},
                                  {.height = 7, .width = 7, .channels = 1024}};

std::string name_of(const ImageShape& s) { return fmt::format("{}x{}x{}", s.height, s.width, s.channels); }

void copy(benchmark::State& state, const ImageShape& shape) {
  const Bytes from(shape.bytes(), 1);
  Bytes to(shape.bytes());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(shape.bytes()));
}

void convert(benchmark::State& state, const ImageShape& shape, const TensorLayout& layout, bool to_device) {
  Bytes host(shape.bytes(), 1), device(layout.size_bytes);
  for (auto _ : state) {
    if (to_device)
      store(layout, shape, host, device);
    else
      load(layout, shape, device, host);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(shape.bytes()));
}

void add(const ImageShape& shape) {
  const std::string size = name_of(shape);
  benchmark::RegisterBenchmark((size + " memcpy").c_str(), [shape](auto& state) { copy(state, shape); });
  struct Row {
    const char* name;
    ImageShape shape;
    TensorLayout layout;
  };
  std::vector<Row> rows = {{"NHWC", shape, nhwc_layout(shape)},
                           {"NHWC signed to unsigned", shape, nhwc_layout(shape, 0x80)},
                           {"planar", shape, planar_layout(shape)},
                           {"NC1HWC2 16", shape, blocked_layout(shape, 16)},
                           {"NC1HWC2 16 signed", shape, blocked_layout(shape, 16, 0x80)}};
  const auto blocks = in_blocks(shape);
  if (blocks && 4 * shape.channels <= 16) {
    rows.push_back({"blocks of 2x2 in 16", *blocks, blocks_layout(*blocks, 16)});
    rows.push_back({"blocks of 2x2 in 16 signed", *blocks, blocks_layout(*blocks, 16, 0x80)});
  }
  for (const Row& row : rows) {
    for (const bool to_device : {true, false}) {
      const std::string full = fmt::format("{} {} {}", size, to_device ? "store" : "load", row.name);
      benchmark::RegisterBenchmark(full.c_str(),
                                   [=](auto& state) { convert(state, row.shape, row.layout, to_device); });
    }
  }
}

}  // namespace
}  // namespace skillet::npu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const auto& shape : skillet::npu::kShapes) skillet::npu::add(shape);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
