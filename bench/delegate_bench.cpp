// The host's time of an inference through the delegate: the device is null, which takes jobs and does nothing. Prints
// the load time (dividing, compiling, uploading), and microseconds and allocations per run of each partition. usage:
// delegate_bench MODEL.tflite [DEVICE [RUNS]]      (default null:a311d 1000)
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "frontend/tflite_delegate/plugin.h"
#include "frontend/tflite_delegate/testing/allocations.h"
#include "frontend/tflite_delegate/testing/fake_host.h"
#include "graph/import/import.h"

namespace skillet::delegate {
namespace {

void measure(FakeHost& host, size_t partition, size_t runs) {
  std::vector<double> times_us;
  const size_t before = allocation_count();
  times_us.reserve(runs);
  for (size_t i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (host.invoke_partition(partition) != kTfLiteOk) {
      std::printf("partition %zu: %s\n", partition, host.errors.empty() ? "failed" : host.errors[0].c_str());
      return;
    }
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
    times_us.push_back(elapsed.count());
  }
  std::ranges::sort(times_us);
  std::printf("partition %zu, %zu nodes: median %.1f us, 99%% %.1f us, %.1f allocations\n", partition,
              host.partition(partition).size(), times_us[runs / 2], times_us[runs * 99 / 100],
              static_cast<double>(allocation_count() - before - 1) / static_cast<double>(runs));
}

int run(const char* model, const char* device, size_t runs) {
  auto graph = tflite::import_file(model);
  if (!graph.ok()) {
    std::fprintf(stderr, "%s\n", graph.error().message.c_str());
    return 1;
  }
  // Offloads everything that the chip takes, profitable or not.
  std::array<const char*, 2> keys = {"device", "partition"}, values = {device, "all"};
  const auto start = std::chrono::steady_clock::now();
  TfLiteDelegate* delegate = create(keys.data(), values.data(), keys.size(), nullptr);
  FakeHost host(std::move(graph).value());
  if (delegate == nullptr || host.apply(delegate) != kTfLiteOk) return 1;
  const std::chrono::duration<double, std::milli> loaded = std::chrono::steady_clock::now() - start;
  std::printf("load: %.1f ms\n", loaded.count());
  for (size_t i = 0; i < host.partitions(); ++i) measure(host, i, runs);
  destroy(delegate);
  return 0;
}

}  // namespace
}  // namespace skillet::delegate

int main(int argc, char** argv) {
  const long runs = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 1000;
  if (argc < 2 || runs < 1) {
    std::fprintf(stderr, "usage: delegate_bench MODEL.tflite [DEVICE [RUNS]]\n");
    return 2;
  }
  return skillet::delegate::run(argv[1], argc > 2 ? argv[2] : "null:a311d", static_cast<size_t>(runs));
}
