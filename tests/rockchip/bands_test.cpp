// One inference over three cores, in bands of rows, gives the same bits as on one core. Varies the network, the number
// of cores, other users of the cores, and failures. SKILLET_RANDOM_BANDS: number of random networks (default 150).
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <thread>

#include "../conformance/random_graph.h"
#include "base/log.h"
#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "graph/import/import.h"
#include "graph/passes/testing/layers.h"
#include "kernels/fake/simulated.h"
#include "runtime/session.h"

namespace skillet::runtime {
namespace {

using passes::Layers;

// Outputs of a session, concatenated.
Result<Bytes> run(Session& session, const std::vector<Bytes>& inputs) {
  std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
  SK_TRY_ASSIGN(const std::vector<Bytes> outputs, session.run(spans));
  Bytes all;
  for (const Bytes& one : outputs) all.insert(all.end(), one.begin(), one.end());
  return all;
}

size_t parts_in_bands(const Session& session) {
  size_t count = 0;
  for (size_t part = 0; part < session.report().parts.size(); ++part) count += session.programs(part).size() > 1;
  return count;
}

// Returns "" when `graph` gives the same bits on one core as on 2 and 3; `divided` counts the sessions with bands.
std::string compare_cores(const ir::Graph& graph, const Target& target, const std::vector<Bytes>& inputs,
                          int& divided) {
  std::optional<Bytes> expected;
  for (const int cores : {1, 2, 3}) {
    auto session = Session::create(graph, target, {.allow_fallback = false, .cores = cores, .longest_runs = true});
    if (!session.ok()) return fmt::format("{} cores: {}", cores, session.error().message);
    const size_t bands = parts_in_bands(**session);
    if (cores == 1 && bands != 0) return "bands for one core";
    divided += bands != 0 ? 1 : 0;
    auto outputs = run(**session, inputs);
    if (!outputs.ok()) return fmt::format("{} cores: {}", cores, outputs.error().message);
    if (!expected) expected = *outputs;
    if (*outputs != *expected) return fmt::format("{} cores give other bits", cores);
  }
  return "";
}

struct Net {
  const char* name;
  ir::Shape image;
  std::vector<std::string> ops;
  const char* outputs;
  int divided = 2;  // how many of the runs with 2 and 3 cores are divided
};

TEST(Bands, OfLayersGiveTheSameBits) {
  const Net kNets[] = {
      {"odd heights", {1, 23, 7, 3}, {"b=conv(a) k=3 s=2 c=16", "c=conv(b) k=3 s=2 c=20"}, "c"},
      {"stride 2, even", {1, 24, 8, 3}, {"b=conv(a) k=3 s=2 c=16", "c=conv(b) k=3 s=2 c=8"}, "c"},
      {"valid", {1, 21, 9, 3}, {"b=conv(a) k=3 valid c=4", "c=conv(b) k=5 s=2 valid c=4"}, "c"},
      {"dilation", {1, 25, 13, 16}, {"b=conv(a) k=3 d=2 c=16", "c=depthwise(b) k=3 d=4"}, "c"},
      {"large filters", {1, 14, 12, 2}, {"b=conv(a) k=7 c=4", "c=conv(b) k=5 c=4"}, "c"},
      {"residuals",
       {1, 17, 6, 16},
       {"b=conv(a) c=32", "c=depthwise(b) k=3", "d=conv(c) c=16", "e=add(d,a)", "f=conv(e) c=32", "g=depthwise(f) k=3",
        "h=conv(g) c=16", "i=add(h,e)", "j=depthwise(i) k=3 s=2"},
       "j"},
      {"read inside and outside", {1, 16, 6, 4}, {"b=conv(a) k=3 c=4", "c=conv(b) k=3 s=2 c=4"}, "bc"},
      {"joined", {1, 13, 6, 16}, {"b=conv(a) k=5 c=16", "c=conv(a) c=2", "d=join(b,c)", "e=conv(d) k=3 c=4"}, "e"},
      {"halves", {1, 13, 6, 32}, {"b=conv(a) c=32", "d=halves(b)", "e=conv(d) k=3 c=16", "f=add(e,D)"}, "f"},
      {"average", {1, 24, 9, 3}, {"b=conv(a) k=3 c=5", "c=average(b) k=2 s=2 valid"}, "c"},
      {"max pooling", {1, 24, 9, 3}, {"b=conv(a) k=3 c=5", "c=max(b) k=3 s=2", "d=conv(c) k=3 c=5"}, "d"},
      {"padding", {1, 15, 9, 3}, {"b=pad(a) p=1", "c=conv(b) k=3 s=2 valid c=4", "d=conv(c) k=3 c=4"}, "d"},
      {"a maximum of rows that begin in the middle",
       {1, 8, 16, 1},
       {"b=pad(a) p=3", "c=conv(b) k=2 c=31", "d=max(b) k=4 s=3", "e=conv(a) k=7 valid c=4"},
       "cde"},
      {"one channel in rows of bytes", {1, 28, 28, 1}, {"b=conv(a) k=5 c=8", "c=conv(b) k=3 s=2 c=8"}, "c"},
      {"a row for each", {1, 3, 6, 3}, {"b=conv(a) k=3 c=4", "c=conv(b) k=3 c=4"}, "c"},
      {"a row for two", {1, 2, 6, 3}, {"b=conv(a) k=3 c=4"}, "b", 1},
      {"one row", {1, 1, 6, 3}, {"b=conv(a) k=3 c=4"}, "b", 0},
      {"heights that end",
       {1, 16, 16, 4},
       {"b=conv(a) k=3 s=2 c=4", "c=conv(b) k=3 s=2 c=4", "d=conv(c) k=3 s=4 c=4"},
       "d"},
  };
  const Target target = open_target("sim:rk3588").value();
  for (const Net& net : kNets) {
    Layers layers(net.image, net.ops, net.outputs);
    ASSERT_EQ(layers.problem, "") << net.name;
    int divided = 0;
    const std::vector<Bytes> inputs = {layers.random_bytes(static_cast<size_t>(net.image.elems()))};
    EXPECT_EQ(compare_cores(layers.graph, target, inputs, divided), "") << net.name;
    EXPECT_EQ(divided, net.divided) << net.name;
  }
}

// Chains with branches, of all operations that a run may contain.
class RandomNet {
 public:
  explicit RandomNet(uint32_t seed) : state_(seed * 7919 + 1) {}

  Layers make() {
    const ir::Shape image{1, 1 + pick(40), 1 + pick(12), channels()};
    std::vector<std::string> ops;
    for (char name = 'b'; name < 'c' + pick(9); ++name) ops.push_back(op(name));
    return Layers(image, ops, std::string(1, static_cast<char>('a' + ops.size())), state_);
  }

 private:
  int pick(int count) { return static_cast<int>((state_ = state_ * 1664525 + 1013904223) >> 16) % count; }
  int channels() { return pick(2) == 0 ? 16 * (1 + pick(3)) : 1 + pick(20); }

  std::string op(char name) {
    const char from = pick(4) == 0 ? static_cast<char>('a' + pick(name - 'a')) : static_cast<char>(name - 1);
    const std::string head = fmt::format("{}=", name);
    const char* const padding = pick(4) == 0 ? "valid" : "same";
    switch (pick(8)) {
      case 0:
        return head +
               fmt::format("depthwise({}) k={} s={} d={} {}", from, 1 + pick(5), 1 + pick(2), 1 + pick(2), padding);
      case 1: return head + fmt::format("pad({}) p={}", from, 1 + pick(2));
      case 2: return head + fmt::format("relu({})", from);
      case 3: return head + fmt::format("add({},{})", from, from);
      case 4: return head + fmt::format("average({}) k=2 s={} valid", from, 1 + pick(2));
      case 5: return head + fmt::format("join({},{})", from, from);
      default:
        return head + fmt::format("conv({}) k={} s={} d={} c={} {}", from, 1 + pick(5), 1 + pick(3), 1 + pick(2),
                                  channels(), padding);
    }
  }

  uint32_t state_;
};

TEST(Bands, OfRandomNetworksGiveTheSameBits) {
  const log::ScopedLevel quiet(log::Level::error);
  const Target target = open_target("sim:rk3588").value();
  const uint32_t count = from_environment("SKILLET_RANDOM_BANDS", 40),
                 first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  int divided = 0, compared = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    Layers layers = RandomNet(seed).make();
    if (!layers.problem.empty()) continue;  // smaller than its filters
    ++compared;
    const auto inputs = random_inputs(layers.graph, seed);
    ASSERT_EQ(compare_cores(layers.graph, target, inputs, divided), "") << "seed " << seed << "\n"
                                                                        << ir::print(layers.graph).substr(0, 8000);
  }
  std::printf("%d networks, %d times divided\n", compared, divided);
  if (first == 1) {
    EXPECT_GT(divided, compared / 2);
  }
}

TEST(Bands, OfRandomGraphsGiveTheSameBits) {
  const log::ScopedLevel quiet(log::Level::error);
  const Target target = open_target("sim:rk3588").value();
  const uint32_t count = from_environment("SKILLET_RANDOM_BANDS", 40),
                 first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  int divided = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const ir::Graph graph = GraphMaker(seed).make();
    ASSERT_EQ(compare_cores(graph, target, random_inputs(graph, seed), divided), "")
        << "seed " << seed << "\n"
        << ir::print(graph).substr(0, 8000);
  }
  std::printf("%u graphs, %d times divided\n", count, divided);
  if (first == 1) {
    EXPECT_GT(divided, static_cast<int>(count) / 10);
  }
}

Layers small_net() {
  return Layers({1, 19, 6, 16}, {"b=conv(a) k=3 c=32", "c=depthwise(b) k=3", "d=conv(c) c=16", "e=add(d,a)"}, "e");
}

// Devices whose submissions can be made to fail; at most `files` of the three can be opened.
struct FailingCores {
  explicit FailingCores(size_t files) {
    const npu::Chip chip = npu::find_chip("rk3588").value();
    const auto open = [this, files,
                       core = fake::simulated_core("rk3588").value()]() -> Result<std::shared_ptr<DeviceContext>> {
      if (devices.size() == files) return error(ErrorCode::io, "no more files");
      auto context = std::make_shared<DeviceContext>();
      context->chip = "rk3588";
      auto device = std::make_unique<FailingDevice>(kernels::open_core(core.core, core.calls).value());
      devices.push_back(device.get());
      context->device = std::move(device);
      return context;
    };
    target = {.name = "sim:rk3588",
              .chip = chip,
              .driver = npu::driver_of(chip).value(),
              .context = open().value(),
              .simulated = true};
    target.pool = std::make_shared<DevicePool>(target.context, 3, open);
  }
  std::vector<FailingDevice*> devices;
  Target target;
};

TEST(Bands, ShareFilesWhereThereAreFewer) {
  Layers layers = small_net();
  const auto inputs = random_inputs(layers.graph, 1);
  for (const size_t files : {1, 2, 3}) {
    FailingCores cores(files);
    int divided = 0;
    EXPECT_EQ(compare_cores(layers.graph, cores.target, inputs, divided), "") << files;
    EXPECT_EQ(divided, 2) << files;
    EXPECT_EQ(cores.devices.size(), files);
  }
}

// When one band fails, its whole part moves to the CPU, or the run is an error; the other cores go on.
TEST(Bands, OneFailingCore) {
  const log::ScopedLevel quiet(log::Level::error);
  const Layers layers = small_net();
  for (const bool fallback : {true, false}) {
    for (const size_t failing : {0, 1, 2}) {
      FailingCores cores(3);
      auto session =
          Session::create(layers.graph, cores.target, {.allow_fallback = fallback, .cores = 3, .longest_runs = true});
      ASSERT_TRUE(session.ok()) << session.error().message;
      ASSERT_EQ(cores.devices.size(), 3U);
      auto alone = Session::create(layers.graph, cores.target, {.allow_fallback = false, .cores = 1});
      auto on_cpu = Session::create(layers.graph, open_target("cpu").value());
      for (uint32_t seed = 0; seed < 4; ++seed) {
        const auto inputs = random_inputs(layers.graph, seed);
        if (seed == 2) cores.devices[failing]->fail_from = cores.devices[failing]->submits;
        const auto got = run(**session, inputs);
        const auto npu = [&] { return run(**alone, inputs).value(); };
        if (seed < 2) {
          EXPECT_EQ(got.value(), npu());
        } else if (fallback) {
          EXPECT_EQ(got.value(), run(**on_cpu, inputs).value());
        } else {
          EXPECT_FALSE(got.ok());
        }
        EXPECT_EQ((*session)->report().parts[0].fallback.empty(), seed < 2 || !fallback);
      }
      cores.devices[failing]->fail_from = 1 << 30;
      const auto inputs = random_inputs(layers.graph, 9);
      EXPECT_EQ(
          run(**alone, inputs).value(),
          run(*Session::create(layers.graph, cores.target, {.allow_fallback = false, .cores = 3, .longest_runs = true})
                   .value(),
              inputs)
              .value());
    }
  }
}

// The programs of bands that failed are removed from the cache, so the next session does not load them.
TEST(Bands, ThatFailAreNotKept) {
  const log::ScopedLevel quiet(log::Level::error);
  const Layers layers = small_net();
  const std::string folder = own_path("bands");
  std::filesystem::create_directory(folder);
  const auto kept = [&] {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  FailingCores cores(3);
  const auto session =
      Session::create(layers.graph, cores.target, {.cache_dir = folder, .cores = 3, .longest_runs = true});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto inputs = random_inputs(layers.graph, 1);
  ASSERT_TRUE(run(**session, inputs).ok());
  ASSERT_EQ(kept(), 1);
  cores.devices[1]->fail_from = cores.devices[1]->submits;
  EXPECT_TRUE(run(**session, inputs).ok()) << "by the CPU";
  EXPECT_EQ(kept(), 0);
  std::filesystem::remove_all(folder);
}

// Threads with sessions that use all cores, and with sessions that use one.
TEST(Bands, OnThreads) {
  constexpr int kThreads = 8, kRuns = 6;
  const Layers layers = small_net();
  const Target target = open_target("sim:rk3588").value();
  std::vector<std::vector<Bytes>> inputs;
  std::vector<Bytes> expected;
  auto alone = Session::create(layers.graph, target, {.allow_fallback = false, .cores = 1});
  for (uint32_t seed = 0; seed < kThreads * kRuns; ++seed) {
    inputs.push_back(random_inputs(layers.graph, seed));
    expected.push_back(run(**alone, inputs.back()).value());
  }
  std::atomic<int> wrong = 0;
  std::latch ready(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto session = Session::create(
          layers.graph, target, {.allow_fallback = false, .cores = t % 3 == 0 ? 1 : 4 - t % 3, .longest_runs = true});
      ready.arrive_and_wait();
      for (int r = 0; r < kRuns; ++r) {
        const auto which = static_cast<size_t>(t * kRuns + r);
        const auto got = session.ok() ? run(**session, inputs[which]) : session.error();
        wrong += !got.ok() || *got != expected[which] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Without an option for the number of cores, the predicted time decides.
TEST(Bands, WhereTheyPay) {
  const struct {
    Net net;
    int cores;
    bool divided;
  } kRows[] = {
      {{"much to compute",
        {1, 160, 160, 64},
        {"b=conv(a) k=3 c=64", "c=conv(b) k=3 c=64", "d=conv(c) k=3 c=64", "e=conv(d) k=3 s=2 c=64"},
        "e"},
       0,
       true},
      {{"the same, forbidden",
        {1, 160, 160, 64},
        {"b=conv(a) k=3 c=64", "c=conv(b) k=3 c=64", "d=conv(c) k=3 c=64"},
        "d"},
       1,
       false},
      {{"little", {1, 16, 16, 16}, {"b=conv(a) k=3 c=16", "c=conv(b) k=3 c=16"}, "c"}, 0, false},
      {{"little, but wanted", {1, 16, 16, 16}, {"b=conv(a) k=3 c=16", "c=conv(b) k=3 c=16"}, "c"}, 3, true},
  };
  const Target target = open_target("sim:rk3588").value();
  for (const auto& row : kRows) {
    const Layers layers(row.net.image, row.net.ops, row.net.outputs);
    ASSERT_EQ(layers.problem, "");
    const auto compiled = compile_for(target, layers.graph, {.cores = row.cores});
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    EXPECT_EQ(!compiled->parts[0].bands.empty(), row.divided) << row.net.name << ": " << compiled->parts[0].note;
    EXPECT_EQ(compiled->parts[0].note.empty(), row.cores == 1) << row.net.name;
    EXPECT_EQ(compile::print(*compiled).find("predicted") == std::string::npos, row.cores == 1);
  }
}

// Published networks, where their files exist.
TEST(Bands, DISABLED_OfModels) {
  const std::filesystem::path folder = skillet::in_tree("../shared/models");
  const Target target = open_target("sim:rk3588").value();
  int found = 0;
  for (const char* name : {"mobilenet_v1_0.25_128_quant", "mobilenet_v1_1.0_224_quant", "mobilenet_v2_1.0_224_quant",
                           "tf2_mobilenet_v2_1.0_224_ptq", "deeplabv3_mnv2_dm05_pascal_quant"}) {
    const auto path = folder / (std::string(name) + ".tflite");
    if (!std::filesystem::exists(path)) continue;
    ++found;
    const ir::Graph graph = tflite::import_file(path).value();
    int divided = 0;
    EXPECT_EQ(compare_cores(graph, target, random_inputs(graph, 1), divided), "") << name;
    EXPECT_EQ(divided, 2) << name;
  }
  std::printf("%d models of %s\n", found, folder.c_str());
}

}  // namespace
}  // namespace skillet::runtime
