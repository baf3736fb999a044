#include "npus/rockchip/sim/timing.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>

#include "npus/rockchip/sim/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Conv;
using testing::Pool;
using testing::Program;
using testing::Scene;

// Cycles that the vendor's estimator printed, row after row of two logs.
struct Row {
  int id;
  int64_t channels, height, width, kernels;
  int kernel;
  bool depthwise;
  int64_t cycles;
};
constexpr Row kInt8Rows[] = {{21, 256, 80, 80, 128, 1, false, 204800}, {22, 128, 80, 80, 256, 1, false, 204800},
                             {23, 256, 40, 40, 256, 3, true, 57600},   {24, 256, 40, 40, 256, 1, false, 102400},
                             {45, 768, 20, 20, 512, 1, false, 153600}, {46, 512, 20, 20, 256, 1, false, 51200},
                             {70, 256, 20, 20, 256, 1, false, 25600},  {71, 256, 20, 20, 512, 1, false, 51200},
                             {72, 512, 20, 20, 256, 1, false, 51200},  {93, 128, 80, 80, 64, 3, false, 460800},
                             {94, 128, 80, 80, 128, 3, true, 115200},  {95, 384, 40, 40, 256, 1, false, 153600},
                             {97, 64, 80, 80, 64, 3, false, 230400},   {117, 64, 40, 40, 64, 1, false, 12800},
                             {118, 256, 40, 40, 128, 1, false, 51200}, {119, 256, 20, 20, 256, 3, true, 14400},
                             {120, 128, 40, 40, 128, 3, true, 28800},  {121, 256, 20, 20, 512, 1, false, 51200}};
constexpr Row kFp16Rows[] = {{2, 3, 256, 256, 3, 1, false, 131072},    {4, 3, 256, 256, 64, 3, false, 2359296},
                             {6, 64, 256, 256, 64, 3, false, 4718592}, {9, 64, 128, 128, 64, 3, false, 1179648},
                             {14, 64, 64, 64, 64, 3, false, 294912},   {19, 64, 32, 32, 64, 3, false, 73728},
                             {22, 64, 5, 5, 64, 7, true, 1568},        {23, 64, 1, 1, 64, 5, true, 400},
                             {24, 64, 1, 1, 4, 1, false, 32},          {25, 4, 1, 1, 64, 1, false, 128}};

Window window(const Row& row) {
  return {.pixels = row.height * row.width,
          .channels = row.channels,
          .kernels = row.kernels,
          .rows = row.kernel,
          .columns = row.kernel,
          .depthwise = row.depthwise};
}

TEST(RockchipTiming, CyclesAreThoseOfTheEstimator) {
  for (const Row& row : kInt8Rows) EXPECT_EQ(conv_cycles(Lanes{}, window(row)), row.cycles) << "row " << row.id;
  for (const Row& row : kFp16Rows)
    EXPECT_EQ(conv_cycles(Lanes{}.halved(), window(row)), row.cycles) << "row " << row.id;
}

TEST(RockchipTiming, ImageLayersTakeATapACycle) {
  const Window image{.pixels = 320 * 320, .channels = 3, .kernels = 32, .rows = 6, .columns = 6, .packed = true};
  EXPECT_EQ(conv_cycles(Lanes{}, image), 3686400);
  EXPECT_EQ(conv_cycles({.image_columns = 2}, image), 1843200);
}

int peak_is_small() {
  constexpr long kMostKib = 512 << 10;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss < kMostKib ? 0 : 3;
}

std::unique_ptr<Timer> timer(std::initializer_list<ParameterValue> values = {}) {
  auto made = create_timer("rk3588", Jobs::open, std::vector<ParameterValue>(values));
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// One job of these programs, a task each.
std::vector<Cost> costs(const std::vector<Program>& programs, std::initializer_list<ParameterValue> values = {}) {
  Scene scene;
  std::vector<Commands> tasks;
  for (const Program& program : programs) {
    const Task task = scene.load(program.stream(), tasks.size() * 0x2000);
    tasks.push_back({.address = task.regcmd, .size_bytes = task.regcmd_count * uint64_t{8}});
  }
  auto found = timer(values)->time_job({.commands = tasks}, scene.memory);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? *found : std::vector<Cost>{};
}

Program plain(const Conv& conv) { return testing::conv_program(conv); }
constexpr Conv kConv{.in_h = 16, .in_w = 16, .in_c = 16, .out_h = 16, .out_w = 16, .out_c = 32};

TEST(RockchipTiming, ReadsTheRegistersOfATask) {
  const std::vector<Cost> found = costs({plain(kConv)}, {{"mac_stretch", 1}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].cycles, 256 * 9);
  EXPECT_EQ(found[0].written_bytes, 256 * 32);
  EXPECT_EQ(found[0].read_bytes, 256 * 16 + 9 * 16 * 32 + 4 * 32);  // features, weights, biases
  EXPECT_GT(found[0].us, 0);
}

// Rows of features that fit the banks that weights leave; 12 banks with 512 units of 64 bytes each.
TEST(RockchipTiming, FeaturesGoThroughTheCbufInSlices) {
  struct Case {
    const char* what;
    int64_t row_bytes, weight_bytes, in_rows, out_rows, window, stride, rows, weight_reads;
  };
  for (const Case& c :
       {Case{"all fit", 32 * 128, 73728, 34, 32, 3, 1, 34, 1},
        // 8 banks, 7 rows of 516 units: 5 rows of output, 52 slices, each except the first repeats 2 rows
        Case{"128 KiB of weights stay", 258 * 128, 73728, 258, 256, 3, 1, 258 + 51 * 2, 1},
        Case{"a row at a time", 258 * 256, 147456, 258, 256, 3, 1, 258 + 255 * 2, 1},
        Case{"1x1: no row twice", 160 * 64, 2048, 160, 160, 1, 1, 160, 1},
        Case{"stride 2: one row twice", 160 * 64, 73728, 160, 80, 3, 2, 160 + 6, 1},
        Case{"streamed weights are read for each slice", 40 * 256, 1179648, 40, 20, 3, 2, 41, 2},
        Case{"streamed once", 20 * 256, 589824, 20, 20, 3, 1, 20, 1},
        Case{"less than a row fits", 1 << 22, 64, 8, 8, 1, 1, 8, 1}, Case{"no bytes", 0, 0, 1, 1, 1, 1, 1, 1}}) {
    const Slices found = slices_of(12, c.row_bytes, c.weight_bytes, c.in_rows, c.out_rows, c.window, c.stride);
    EXPECT_EQ(found.rows, c.rows) << c.what;
    EXPECT_EQ(found.weight_reads, c.weight_reads) << c.what;
  }
}

TEST(RockchipTiming, MacsWaitForFeatures) {
  const auto us = [](double share) {
    return total(costs({plain(kConv)}, {{"load_share", share}, {"dram_gbps", 8}, {"mac_stretch", 1}, {"clock_ghz", 1}}))
        .us;
  };
  EXPECT_NEAR(us(0), 2.304, 1e-9);
  EXPECT_NEAR(us(0.5), 2.304 + 256 * 16 / 16e3, 1e-9);
  EXPECT_NEAR(us(1), 2.304 + 256 * 16 / 8e3, 1e-9);
}

// If a table's estimator shows slow memory, the board is not modelled with fast memory.
TEST(RockchipTiming, MemoryIsNoFasterThanATableSays) {
  Layer layer{.id = 1,
              .op = "conv",
              .in_h = 80,
              .in_w = 80,
              .in_c = 256,
              .out_h = 80,
              .out_w = 80,
              .out_c = 64,
              .kh = 1,
              .kw = 1,
              .weights = 16384};
  const double bytes = 80 * 80 * (256 + 64) + 256 * 64;
  const auto us = [&](int64_t cycles) {
    layer.memory_cycles = cycles;
    const auto made = create_timer("rk3588", Jobs::vendor);
    return total(*(*made)->time_layers({&layer, 1}, Fusion::alone)).us;
  };
  EXPECT_NEAR(us(1'000'000), bytes / (bytes / 1e6) / 1e3, 1e-6);
  EXPECT_EQ(us(1'000), us(0));  // faster than what one core draws
}

// The output stage looks up 32 kernels at a time; fewer kernels take as long.
TEST(RockchipTiming, TablesCountGroupsOfKernels) {
  const auto us = [](int64_t kernels) {
    const Layer layer{.id = 1,
                      .op = "conv",
                      .act = "swish",
                      .in_h = 80,
                      .in_w = 80,
                      .in_c = 16,
                      .out_h = 80,
                      .out_w = 80,
                      .out_c = kernels,
                      .kh = 1,
                      .kw = 1,
                      .weights = 16 * kernels};
    const auto made = create_timer("rk3588", Jobs::vendor, std::vector<ParameterValue>{{"table_rate", 0.5}});
    return total(*(*made)->time_layers({&layer, 1}, Fusion::alone)).us;
  };
  EXPECT_NEAR(us(32), 80 * 80 * 32 / 0.5 / 1e3, 1e-9);
  EXPECT_EQ(us(16), us(32));
  EXPECT_EQ(us(33), us(64));
  EXPECT_NEAR(us(64), 2 * us(32), 1e-9);
}

// The second operand of an addition comes through a separate port.
TEST(RockchipTiming, SecondOperandsComeBesideTheFirst) {
  const auto us = [](const char* op) {
    const Layer layer{.id = 1, .op = op, .in_h = 64, .in_w = 64, .in_c = 64, .out_h = 64, .out_w = 64, .out_c = 64};
    const auto made = create_timer("rk3588", Jobs::vendor);
    const auto costs = *(*made)->time_layers({&layer, 1}, Fusion::alone);
    return std::pair(costs[0].us, costs[0].read_bytes);
  };
  EXPECT_EQ(us("add").first, us("mul").first);
  EXPECT_EQ(us("add").second, 2 * us("mul").second);
}

// At a low clock the memory port transfers less than the memory could.
TEST(RockchipTiming, ThePortMovesSoManyBytesACycle) {
  const auto us = [](double ghz, double bytes) {
    return total(
               costs(
                   {plain(kConv)},
                   {{"clock_ghz", ghz}, {"bus_bytes", bytes}, {"dram_gbps", 8}, {"mac_stretch", 1}, {"load_share", 1}}))
        .us;
  };
  const double macs = 256 * 9, features = 256 * 16;
  EXPECT_NEAR(us(0.2, 16), macs / 200 + features / 3200, 1e-9);
  EXPECT_NEAR(us(0.2, 64), macs / 200 + features / 8000, 1e-9);
  EXPECT_NEAR(us(1, 16), macs / 1000 + features / 8000, 1e-9);
}

TEST(RockchipTiming, StartsOfTasksJobsAndSubmissions) {
  const auto made = timer({{"task_us", 20}, {"interrupt_us", 5}, {"iommu_us", 15}, {"submit_us", 3}});
  EXPECT_NEAR(made->wall_us(100, 4, 2, 1), 100 + 4 * 25 + 2 * 15 + 3, 1e-9);
}

// An open parameter is a range around its value; an end that is given stays.
TEST(RockchipTiming, RangesHaveTwoEnds) {
  const auto wall = [](std::vector<ParameterValue> values) {
    const auto made = create_timer("rk3588", Jobs::open, values);
    return made.ok() ? (*made)->wall_us(0, 10, 2, 1) : -1;
  };
  const double usual = wall({}), fast = wall(ends_of_ranges("rk3588", true, {})),
               slow = wall(ends_of_ranges("rk3588", false, {}));
  EXPECT_LT(fast, usual);
  EXPECT_LT(usual, slow);
  const std::vector<ParameterValue> known = {{"task_us", 22.5}};
  EXPECT_GT(wall(ends_of_ranges("rk3588", true, known)), fast);
  EXPECT_LT(wall(ends_of_ranges("rk3588", false, known)), slow);
  EXPECT_TRUE(ends_of_ranges("imx8mp", true, {}).empty());
}

TEST(RockchipTiming, EveryStateAndRangeIsOfARow) {
  size_t ranges = 0, ends = 0;
  for (const auto& [chip, least] : {std::pair{"rk3588", 4U}, std::pair{"rk3576", 2U}}) {
    const std::vector<TimingState> states = timing_states(chip);
    EXPECT_GE(states.size(), least) << chip;
    for (const TimingState& state : states)
      EXPECT_TRUE(create_timer(chip, Jobs::open, state.values).ok()) << state.title;
    ends += ends_of_ranges(chip, true, {}).size();
  }
  for (const TimingParameter& row : timing_parameters()) {
    if (row.high == 0) continue;
    ++ranges;
    EXPECT_LE(row.low, row.value) << row.name;
    EXPECT_GE(row.high, row.value) << row.name;
  }
  EXPECT_EQ(ranges, ends);
  EXPECT_GT(ranges, 0U);
}

// Section 13 and 2 of its specification.
TEST(RockchipTiming, Rk3576HasWhatWasMeasured) {
  const std::map<std::string_view, double> measured = {{"clock_ghz", 0.786}, {"task_us", 26.3},
                                                       {"submit_us", 172},   {"cache_us", 1.2},
                                                       {"cache_gbps", 10.6}, {"memory_gbps", 11.9}};
  size_t found = 0;
  for (const TimingParameter& row : timing_parameters()) {
    const auto at = measured.find(row.name);
    if (row.chip != "rk3576" || row.jobs != "open" || at == measured.end()) continue;
    ++found;
    EXPECT_EQ(row.value, at->second) << row.name;
  }
  EXPECT_EQ(found, measured.size());
}

TEST(RockchipTiming, MoreWorkTakesLonger) {
  const double base = total(costs({plain(kConv)})).us;
  Conv change = kConv;
  change.out_c = 64;
  EXPECT_GT(total(costs({plain(change)})).us, base);
  change = kConv;
  change.add = true;
  EXPECT_GT(total(costs({plain(change)}, {{"dram_gbps", 0.1}})).us,
            total(costs({plain(kConv)}, {{"dram_gbps", 0.1}})).us);
  change = kConv;
  change.in_c = 96;  // a bigger stream of weights
  EXPECT_GT(total(costs({plain(change)})).us, base);
}

// The same output in two tasks reads the rows between them twice, and the weights unless they stay.
TEST(RockchipTiming, TasksCostWhatTheyFetch) {
  Conv half = kConv;
  half.in_h = 9;
  half.out_h = 8;
  Program second = plain(half);
  const Totals apart = total(costs({plain(half), second})), whole = total(costs({plain(kConv)}));
  EXPECT_EQ(apart.written_bytes, whole.written_bytes);
  EXPECT_EQ(apart.read_bytes - whole.read_bytes, 2 * 16 * 16 + 9 * 16 * 32 + 4 * 32);
  second.change<hw::CnaCbufCon0>([](hw::CnaCbufCon0& con) { con.weight_reuse = true; });
  EXPECT_EQ(apart.read_bytes - total(costs({plain(half), second})).read_bytes, 9 * 16 * 32);
  const auto wall = timer();
  EXPECT_GT(wall->wall_us(10, 2, 1, 1), wall->wall_us(10, 1, 1, 1));
}

TEST(RockchipTiming, OtherBlocks) {
  const Totals pooled = total(costs({testing::pool_program(Pool{})}));
  EXPECT_EQ(pooled.read_bytes, 5 * 7 * 32);
  EXPECT_EQ(pooled.written_bytes, 2 * 3 * 32);
  const Totals added = total(costs({testing::element_wise_program(64, 0x904202C0)}));
  EXPECT_EQ(added.written_bytes, 64 * 16);
  EXPECT_GE(added.read_bytes, 2 * 64 * 16);
}

// A large count in a damaged file costs no memory: the stream claims 2 GiB, of which a few pages are mapped.
TEST(RockchipTiming, UnmappedCommandsCostNoMemory) {
  const auto timed = [](uint64_t address) {
    const Scene scene;
    const Commands commands{.address = address, .size_bytes = uint64_t{1} << 31};
    const auto found = timer()->time_job({.commands = {&commands, 1}}, scene.memory);
    ::_exit(found.ok() ? 1 : found.error().message.find("IOMMU fault") == std::string::npos ? 2 : peak_is_small());
  };
  for (const uint64_t address : {testing::kStream, uint64_t{0x900000}})
    EXPECT_EXIT(timed(address), ::testing::ExitedWithCode(0), "");
}

TEST(RockchipTiming, BadStreamsAreErrors) {
  Scene scene;
  const auto timed = [&](uint64_t address, uint64_t bytes) {
    const Commands commands{.address = address, .size_bytes = bytes};
    return timer()->time_job({.commands = {&commands, 1}}, scene.memory).ok();
  };
  EXPECT_FALSE(timed(testing::kStream, 0));
  EXPECT_FALSE(timed(0x900000, 64));          // nothing is mapped there
  EXPECT_FALSE(timed(testing::kStream, 64));  // no command starts a block
  EXPECT_FALSE(timed(testing::kStream, UINT64_MAX - 7));
}

}  // namespace
}  // namespace skillet::sim::rockchip
