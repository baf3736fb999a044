// The test vectors of the hardware specification, sections 12.1, 12.2 and 12.4.
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/recorded.h"
#include "npus/rockchip/compiler/registers.h"
#include "npus/rockchip/compiler/weights.h"

namespace skillet::npus::rockchip {
namespace {

Tuning tuning(npu::Tuning base) { return tuning_of({.tuning = base}).value(); }

TEST(RockchipVectors, Gains) {
  struct Row {
    uint32_t bits;
    Gain rule, recorded;
  };
  const Row rows[] = {
      {0x3E2AAAAB, {21846, 17}, {21846, 17}}, {0x3A83126F, {16778, 24}, {16778, 24}},
      {0x3F000000, {16385, 15}, {16385, 15}}, {0x3E954C98, {19111, 16}, {19111, 16}},
      {0x3F7FFE00, {16384, 14}, {16384, 15}}, {0x3BFFFF29, {16384, 21}, {32768, 22}},
  };
  for (const Row& row : rows) {
    const auto value = std::bit_cast<float>(row.bits);
    const Gain rule = output_gain(value, true), recorded = output_gain(value, false);
    EXPECT_EQ(rule.scale, row.rule.scale) << value;
    EXPECT_EQ(rule.shift, row.rule.shift) << value;
    EXPECT_EQ(recorded.scale, row.recorded.scale) << value;
    EXPECT_EQ(recorded.shift, row.recorded.shift) << value;
  }
}

// ---- register programs: as recorded, all addresses given ----

using Registers = std::map<uint32_t, uint32_t>;  // the value written last

Registers registers_of(const Conv& conv) {
  const Tuning recorded = tuning(npu::Tuning::recorded);
  const Geometry g = geometry(conv, recorded);
  const auto parts = split(*hw::find_chip("rk3588"), conv, g, recorded);
  EXPECT_TRUE(parts.ok());
  EXPECT_EQ(parts->tasks.size(), 1U);
  const auto at = [](uint64_t address) { return bits::Address{bits::Address::kAbsolute, address}; };
  const TaskPlaces places{.input = at(0x4000),
                          .output = at(0x6000),
                          .second = at(conv.addition ? 0x8000 : 0),
                          .weights = at(0x2000),
                          .operands = at(0x3000)};
  const auto commands = write_commands(conv, g, parts->tasks[0], places, recorded, nullptr, false);
  EXPECT_TRUE(commands.ok());
  EXPECT_EQ(commands->bytes.size(), size_t{kCommandsPerTask} * hw::kCommandBytes);
  Registers registers;
  for (size_t i = 0; i < commands->bytes.size(); i += hw::kCommandBytes) {
    const auto word = load_le<uint64_t>(commands->bytes.data() + i);
    registers[static_cast<uint32_t>(word & 0xFFFF)] = static_cast<uint32_t>(word >> 16);
  }
  return registers;
}

std::string graph(int in, int out, const char* kind, const char* filter, const char* padding) {
  return fmt::format(
      "graph \"\"\n"
      "tensor 0 \"in\" uint8 1x5x5x{0} scale=0.5 zero=120\n"
      "tensor 1 \"w\" uint8 {3} scale=0.25 zero=131 const=zeros:{4}\n"
      "tensor 2 \"b\" int32 {1} scale=0.125 zero=0 const=zeros:{5}\n"
      "tensor 3 \"conv\" uint8 1x5x5x{1} scale=0.75 zero=7\n"
      "tensor 4 \"second\" uint8 1x5x5x{1} scale=0.4 zero=100\n"
      "tensor 5 \"out\" uint8 1x5x5x{1} scale=0.75 zero=7\n"
      "inputs 0 4\noutputs 5\n"
      "op 0 {2} in=[0 1 2] out=[3] padding={6}\n"
      "op 1 ADD in=[3 4] out=[5]\n",
      in, out, kind, filter,
      [&] {
        int64_t elems = 1;
        int64_t value = 0;
        for (const char* c = filter;; ++c) {
          if (*c >= '0' && *c <= '9') {
            value = value * 10 + (*c - '0');
            continue;
          }
          elems *= value;
          value = 0;
          if (*c == 0) return elems;
        }
      }(),
      out * 4, padding);
}

Conv conv_of(const std::string& text, bool fused) {
  const Tuning recorded = tuning(npu::Tuning::recorded);
  const auto parsed = ir::parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  auto conv = make_conv(*parsed, 0, recorded, {}, fused);
  EXPECT_TRUE(conv.ok());
  if (fused) {
    EXPECT_TRUE(fuse_addition(*parsed, 0, 1, recorded, *conv).ok());
  }
  return *conv;
}

const Registers kP0 = {
    {0x1040, 0xB1},    {0x1104, 0},       {0x1100, 0},       {0x100C, 0},          {0x4004, 0xE},
    {0x5004, 0xE},     {0x1010, 0x340},   {0x1014, 0x9},     {0x1020, 0x50005},    {0x1024, 0x20010},
    {0x1028, 0x5},     {0x102C, 0x19},    {0x1030, 0x900},   {0x1034, 0x90},       {0x1038, 0x3030010},
    {0x1044, 0x2},     {0x104C, 0xB},     {0x1050, 0x10000}, {0x1054, 0x10000},    {0x1058, 0x10000},
    {0x105C, 0x10000}, {0x1060, 0},       {0x1064, 0},       {0x1068, 0x11},       {0x1070, 0x4000},
    {0x1074, 0},       {0x1078, 0xF000F}, {0x107C, 0x14},    {0x1080, 0x5},        {0x1084, 0x50005},
    {0x1088, 0x10},    {0x1110, 0x2000},  {0x1180, 0},       {0x1184, 0xFFFFFFF8}, {0x3010, 0x1},
    {0x3014, 0x40004}, {0x3018, 0x1F},    {0x301C, 0},       {0x3030, 0},          {0x400C, 0x1E4},
    {0x4010, 0},       {0x4014, 0},       {0x4020, 0x6000},  {0x4024, 0x190},      {0x4030, 0x4},
    {0x4034, 0x4},     {0x4038, 0},       {0x403C, 0xF001F}, {0x4040, 0x20150},    {0x4044, 0},
    {0x4048, 0},       {0x404C, 0},       {0x4050, 0x124},   {0x4054, 0xFFFD},     {0x4058, 0x1F},
    {0x405C, 0x40004}, {0x4060, 0x53},    {0x4064, 0},       {0x4068, 0},          {0x406C, 0},
    {0x4070, 0x383},   {0x4074, 0},       {0x4078, 0x1},     {0x407C, 0},          {0x4080, 0xFFFFFF87},
    {0x4084, 0x5556},  {0x4088, 0x11},    {0x40C0, 0x320},   {0x40C4, 0},          {0x500C, 0x4},
    {0x5010, 0x4},     {0x5014, 0x1F},    {0x5018, 0},       {0x501C, 0x2},        {0x5020, 0x3000},
    {0x5028, 0},       {0x502C, 0},       {0x5034, 0x1},     {0x5038, 0},          {0x5040, 0},
    {0x5044, 0x7810},  {0x5048, 0},       {0x504C, 0},       {0x5064, 0},          {0x5068, 0x1010101},
    {0x506C, 0},       {0x0014, 0},       {0x0008, 0x1D},    {0x0000, 0},
};

// P0 with zeros where the specification abbreviates, and with the differences of a program.
Registers expected(const Registers& differences) {
  Registers all = kP0;
  for (uint32_t address = 0x1140; address <= 0x117C; address += 4) all[address] = 0;
  for (uint32_t address = 0x4090; address <= 0x40AC; address += 4) all[address] = 0;
  for (uint32_t address = 0x4100; address <= 0x412C; address += 4) all[address] = 0;
  for (const auto& [address, value] : differences) all[address] = value;
  return all;
}

void expect_registers(const Registers& ours, const Registers& theirs) {
  for (const auto& [address, value] : theirs) {
    ASSERT_TRUE(ours.contains(address)) << fmt::format("0x{:04x} is not written", address);
    EXPECT_EQ(ours.at(address), value) << fmt::format("0x{:04x}: 0x{:x}, not 0x{:x}", address, ours.at(address), value);
  }
  EXPECT_EQ(ours.size(), theirs.size());
}

TEST(RockchipVectors, RegisterPrograms) {
  expect_registers(registers_of(conv_of(graph(3, 16, "CONV_2D", "16x3x3x3", "same"), false)), expected({}));
  expect_registers(registers_of(conv_of(graph(40, 40, "DEPTHWISE_CONV_2D", "1x3x3x40", "same"), false)),
                   expected({{0x100C, 0x3},
                             {0x1024, 0x270030},
                             {0x1030, 0x1B0},
                             {0x1034, 0x1B0},
                             {0x1038, 0x3030001},
                             {0x1044, 0x4},
                             {0x1088, 0x30},
                             {0x3010, 0x3},
                             {0x3018, 0x3F},
                             {0x400C, 0x1FC},
                             {0x403C, 0x27003F},
                             {0x4050, 0x36C},
                             {0x4058, 0x3F},
                             {0x40C0, 0x640},
                             {0x5014, 0x3F},
                             {0x5044, 0x7816}}));
  expect_registers(registers_of(conv_of(graph(16, 32, "CONV_2D", "32x1x1x16", "same"), true)),
                   expected({{0x1024, 0xF0010},
                             {0x1030, 0x200},
                             {0x1034, 0x10},
                             {0x1038, 0x1010020},
                             {0x1068, 0},
                             {0x1184, 0xFFFFFF80},
                             {0x403C, 0x1F001F},
                             {0x4070, 0x904202C0},
                             {0x4074, 0x1C},
                             {0x4078, 0xD6666},
                             {0x5018, 0x8000},
                             {0x5034, 0x40000004},
                             {0x5038, 0x8190},
                             {0x5040, 0x190},
                             {0x5044, 0x7D00},
                             {0x504C, 0x190},
                             {0x506C, 0x190}}));
}

// The place at which the only weight other than 0 is stored.
int64_t position(Conv conv, size_t weight, const Tuning& tuning) {
  const size_t kernels = conv.depthwise ? 1 : static_cast<size_t>(conv.out.channels);
  Bytes weights(kernels * static_cast<size_t>(conv.taps() * conv.in.channels), 128);
  weights[weight] = 129;
  conv.weights = std::move(weights);
  Bytes packed;
  pack_weights(conv, geometry(conv, tuning), tuning, packed);
  EXPECT_EQ(std::ranges::count(packed, 1), 1);
  return std::ranges::find(packed, 1) - packed.begin();
}

TEST(RockchipVectors, WeightPositions) {
  const Tuning recorded = tuning(npu::Tuning::recorded), proven = tuning(npu::Tuning::proven);
  Tuning whole = proven;
  whole.read_lanes = false;
  Conv direct{.in = {9, 9, 48}, .out = {9, 9, 64}, .kernel_height = 3, .kernel_width = 3};
  const size_t weight = ((33 * 3 + 1) * 3 + 2) * 48 + 40;
  EXPECT_EQ(position(direct, weight, recorded), 25624);
  EXPECT_EQ(position(direct, weight, proven), 25624);
  Conv depthwise{.in = {9, 9, 96}, .out = {9, 9, 96}, .kernel_height = 3, .kernel_width = 3, .depthwise = true};
  EXPECT_EQ(position(depthwise, 2 * 3 * 96 + 70, recorded), 774);
  EXPECT_EQ(position(depthwise, 2 * 3 * 96 + 70, whole), 966);
  EXPECT_EQ(position(depthwise, 2 * 3 * 96 + 70, proven), 774);
}

// Lanes of the last group, for each class of remainders of 64 channels (section 5.3); the filler is the zero point.
TEST(RockchipVectors, RecordedDepthwiseGroups) {
  const Tuning recorded = tuning(npu::Tuning::recorded);
  const struct {
    int32_t channels, lanes;
  } rows[] = {{8, 16},  {24, 32}, {37, 37}, {48, 48}, {49, 64},  {56, 64}, {63, 64},
              {64, 64}, {70, 16}, {88, 64}, {96, 32}, {100, 36}, {120, 64}};
  for (const auto& row : rows) {
    Conv conv{.in = {3, 3, row.channels}, .out = {3, 3, row.channels}, .depthwise = true, .weight_zero = 128 + 5};
    conv.weights = Bytes(static_cast<size_t>(row.channels), 128 + 7);
    Bytes packed;
    pack_weights(conv, geometry(conv, recorded), recorded, packed);
    const int32_t before = (row.channels - 1) / 64 * 64;
    EXPECT_EQ(packed.size(), static_cast<size_t>(before + row.lanes)) << row.channels;
    EXPECT_EQ(std::ranges::count(packed, 7), row.channels);
    EXPECT_EQ(std::ranges::count(packed, 5), before + row.lanes - row.channels) << row.channels;
  }
}

// ---- tasks: the worked examples of section 6.3, as recorded ----

TEST(RockchipVectors, Splits) {
  struct Row {
    Conv conv;
    std::vector<std::pair<int32_t, int32_t>> tasks;  // first input row, output rows
    int32_t data_banks, weight_banks;
  };
  const Row rows[] = {
      {{.in = {224, 224, 3},
        .out = {112, 112, 32},
        .kernel_height = 3,
        .kernel_width = 3,
        .stride_y = 2,
        .stride_x = 2,
        .pad_bottom = 1,
        .pad_right = 1},
       {{0, 45}, {90, 45}, {180, 22}},
       10,
       2},
      {{.in = {112, 112, 32},
        .out = {112, 112, 32},
        .kernel_height = 3,
        .kernel_width = 3,
        .pad_top = 1,
        .pad_left = 1,
        .pad_bottom = 1,
        .pad_right = 1,
        .depthwise = true},
       {{0, 90}, {89, 22}},
       10,
       2},
      {{.in = {56, 56, 64}, .out = {56, 56, 128}}, {{0, 56}}, 7, 5},
      {{.in = {14, 14, 512}, .out = {14, 14, 512}}, {{0, 13}, {13, 1}}, 3, 9},
      {{.in = {7, 7, 1024}, .out = {7, 7, 1024}}, {{0, 7}}, 2, 10},
      {{.in = {56, 56, 256},
        .out = {56, 56, 256},
        .kernel_height = 3,
        .kernel_width = 3,
        .pad_top = 1,
        .pad_left = 1,
        .pad_bottom = 1,
        .pad_right = 1},
       {{0, 15}, {14, 14}, {28, 14}, {42, 13}},
       7,
       5},
  };
  const Tuning recorded = tuning(npu::Tuning::recorded);
  for (const Row& row : rows) {
    const auto parts = split(*hw::find_chip("rk3588"), row.conv, geometry(row.conv, recorded), recorded);
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    std::vector<std::pair<int32_t, int32_t>> tasks;
    for (const Task& task : parts->tasks) tasks.emplace_back(task.top, task.out_rows);
    EXPECT_EQ(tasks, row.tasks) << row.conv.in.height << "x" << row.conv.in.channels;
    EXPECT_EQ(parts->tasks[0].data_banks, row.data_banks);
    EXPECT_EQ(parts->tasks[0].weight_banks, row.weight_banks);
  }
}

// By the rule: each output row of each channel once, within the on-chip buffer, from the input rows that it needs.
TEST(RockchipVectors, CountedSplitsCoverTheOutput) {
  const Tuning proven = tuning(npu::Tuning::proven);
  const hw::ChipRow& chip = *hw::find_chip("rk3588");
  for (const int32_t size : {1, 3, 7, 56, 224, 2047}) {
    for (const int32_t channels : {1, 3, 16, 48, 64, 320}) {
      for (const int32_t kernel : {1, 3, 7}) {
        for (const int32_t stride : {1, 2}) {
          const int32_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
          const Conv conv{.in = {size, size, channels},
                          .out = {out, out, 96},
                          .kernel_height = kernel,
                          .kernel_width = kernel,
                          .stride_y = stride,
                          .stride_x = stride,
                          .pad_top = pad,
                          .pad_left = pad};
          const Geometry g = geometry(conv, proven);
          const auto parts = split(chip, conv, g, proven);
          if (!parts.ok()) continue;
          std::map<int32_t, int32_t> rows;  // by first channel
          for (const Task& task : parts->tasks) {
            EXPECT_EQ(task.out_top, rows[task.first_lane]);
            rows[task.first_lane] += task.out_rows;
            EXPECT_LE(g.row_entries * task.rows, task.data_banks * 512 - 16) << "the last bank is 97 % full (10.1)";
            EXPECT_LE(task.data_banks + task.weight_banks, chip.cbuf_banks);
            if (task.reuse_weights) {
              EXPECT_LE(g.kernel_bytes * task.lanes, int64_t{task.weight_banks} * chip.cbuf_bank_bytes)
                  << "weights that were streamed are no longer there";
            }
            EXPECT_EQ(task.top, std::max(0, task.out_top * stride - pad));
            EXPECT_GE(task.top + task.rows, std::min(size, (task.out_top + task.out_rows - 1) * stride - pad + kernel));
          }
          for (const auto& [lane, count] : rows) EXPECT_EQ(count, out) << lane;
        }
      }
    }
  }
}

// Weights of 512 kernels leave no room for all rows, so weights are streamed past the features. Convolutions that must
// be divided anyway keep their weights.
TEST(RockchipVectors, StreamedWeightsSaveADivision) {
  struct Row {
    Conv conv;
    size_t tasks;
  };
  const Row rows[] = {
      {{.in = {14, 14, 512}, .out = {14, 14, 512}}, 1},
      {{.in = {7, 7, 1024}, .out = {7, 7, 1024}}, 1},
      {{.in = {56, 56, 64}, .out = {56, 56, 128}}, 1},
      {{.in = {56, 56, 512}, .out = {56, 56, 512}}, 19},
  };
  const Tuning proven = tuning(npu::Tuning::proven);
  for (const Row& row : rows) {
    const auto parts = split(*hw::find_chip("rk3588"), row.conv, geometry(row.conv, proven), proven);
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    EXPECT_EQ(parts->tasks.size(), row.tasks) << row.conv.in.height << "x" << row.conv.in.channels;
  }
}

}  // namespace
}  // namespace skillet::npus::rockchip
