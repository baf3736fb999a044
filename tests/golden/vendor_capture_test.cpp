// Programs of a made-up case as captures: addresses of buffers, the programs included, and what is refused.
#include "vendor_capture.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>

#include "base/testing/own_folder.h"
#include "npu/driver.h"
#include "vendor_halves.h"

namespace skillet::golden {
namespace {

using nlohmann::json;

constexpr const char* kCompatible = "rockchip,rk3576-rknn-core";

// Each task has a word of these registers; values are offsets into a buffer.
struct Case {
  VendorCase c{.folder = "made-up",
               .j = {{"tasks", json::array()}, {"buffers", json::array()}, {"kind", "test"}},
               .program = {}};

  void add(int op, const char* blocks, const std::vector<std::pair<uint16_t, uint32_t>>& words, json more = {},
           uint64_t target = 0x0201) {
    json task = {{"op", op},
                 {"blocks", blocks},
                 {"enable", blocks[0] == 'd' ? "0x18" : "0x1d"},
                 {"words", words.size()},
                 {"offset", c.program.size()}};
    if (!more.is_null()) task.update(more);
    c.j["tasks"].push_back(task);
    for (const auto& [address, value] : words) {
      Bytes word(kWordBytes);
      store_le(word.data(), target << 48 | uint64_t{value} << 16 | address);
      c.program.insert(c.program.end(), word.begin(), word.end());
    }
  }
};

// Captures omit trailing zeros.
Bytes whole(const capture::BufferSnapshot& buffer) {
  Bytes bytes(buffer.bytes.begin(), buffer.bytes.end());
  bytes.resize(buffer.size_bytes);
  return bytes;
}

std::map<uint16_t, uint32_t> words_of(const capture::Submission& submission, size_t task) {
  const uint64_t at = submission.jobs.at(0).commands.at(task).address;
  std::map<uint16_t, uint32_t> out;
  for (const auto& buffer : submission.buffers) {
    if (buffer.address != at) continue;
    const Bytes bytes = whole(buffer);
    for (size_t i = 0; i < submission.jobs[0].commands[task].size_bytes; i += kWordBytes) {
      const auto word = load_le<uint64_t>(bytes.data() + i);
      out[static_cast<uint16_t>(word)] = static_cast<uint32_t>(word >> 16);
    }
  }
  return out;
}
const capture::BufferSnapshot& buffer_at(const capture::Submission& submission, uint64_t address) {
  for (const auto& buffer : submission.buffers)
    if (address >= buffer.address && address < buffer.address + buffer.size_bytes) return buffer;
  static const capture::BufferSnapshot none;
  ADD_FAILURE() << "no buffer at " << address;
  return none;
}

TEST(VendorCapture, BasesAreThoseOfBuffers) {
  Case made;
  made.add(1, "conv",
           {{0x1088, 0x20},
            {0x1110, 0},
            {0x4018, 0x40},
            {0x5018, 0},
            {0x5020, 0},
            {0x5024, 0},
            {0x5028, 0},
            {0x502C, 0},
            {0x5034, 0x41},
            {0x5038, 0}});
  const auto out = capture_of(made.c, kCompatible);
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_EQ(out->device.compatible, kCompatible);
  ASSERT_EQ(out->submissions.size(), 1U);
  const auto& one = out->submissions[0];
  const auto words = words_of(one, 0);
  EXPECT_TRUE(buffer_at(one, words.at(0x1088)).read);
  EXPECT_EQ(words.at(0x1088) % 0x100, 0x20U);
  EXPECT_TRUE(buffer_at(one, words.at(0x4018)).write);
  EXPECT_EQ(words.at(0x4018) % 0x100, 0x40U);
  EXPECT_EQ(load_le<uint32_t>(whole(buffer_at(one, words.at(0x5024))).data()), 0x0e0eU);
  // A channel's factor is not 0, which would omit its group.
  EXPECT_EQ(load_le<int16_t>(whole(buffer_at(one, words.at(0x5020))).data() + 48), 16384);
  // The weights, which the case lacks, are not all equal.
  const Bytes weights = whole(buffer_at(one, words.at(0x1110)));
  EXPECT_NE(weights[0], weights[1]);
  // Operands that the program does not read have no base: the main operand of the DPU alone, its second operand, its
  // scale.
  for (const uint16_t none : {0x5018, 0x5038, 0x502C}) EXPECT_EQ(words.at(none), 0U) << none;
  EXPECT_EQ(words.at(0x0008), 0x1DU);  // the end starts the blocks named in the record
}

TEST(VendorCapture, OperandsOfTheDpuAlone) {
  Case made;
  made.add(2, "dpu", {{0x4018, 0}, {0x5018, 0}, {0x5020, 0}, {0x5034, 0x50000044}, {0x5038, 0}});
  made.c.j["operand_tensors"] = {{{"A", 5}, {"at16", 5}, {"C", 16384}, {"shift_word", "0x606"}}};
  const auto out = capture_of(made.c, kCompatible);
  ASSERT_TRUE(out.ok()) << out.error().message;
  const auto words = words_of(out->submissions.at(0), 0);
  const Bytes tensor = whole(buffer_at(out->submissions[0], words.at(0x5020)));
  EXPECT_EQ(load_le<int32_t>(tensor.data()), 5);
  EXPECT_EQ(load_le<int32_t>(tensor.data() + 16), 5);
  EXPECT_EQ(load_le<int16_t>(tensor.data() + 32), 16384);
  EXPECT_EQ(load_le<uint32_t>(tensor.data() + 48), 0x606U);
  EXPECT_NE(words.at(0x5018), words.at(0x5038));
  EXPECT_NE(buffer_at(out->submissions[0], words.at(0x5018)).bytes,
            buffer_at(out->submissions[0], words.at(0x5038)).bytes);
}

// Cases lack these operands: they follow from the rest of the programs.
TEST(VendorCapture, OperandsOfSlopesAndProducts) {
  const auto tensor_at = [](const capture::Submission& one, uint16_t base) {
    const Bytes tensor = whole(buffer_at(one, words_of(one, 0).at(base)));
    return std::array<int64_t, 3>{load_le<int32_t>(tensor.data()), load_le<int16_t>(tensor.data() + 32),
                                  load_le<uint32_t>(tensor.data() + 48)};
  };
  Case slope;
  slope.add(1, "conv", {{0x4018, 0}, {0x4060, 0x402}, {0x5024, 0}, {0x5028, 0x18}, {0x502C, 0}});
  slope.c.j["shift_word"] = "0x0e0e";
  const auto conv = capture_of(slope.c, kCompatible);
  ASSERT_TRUE(conv.ok()) << conv.error().message;
  const auto& one = conv->submissions.at(0);
  EXPECT_EQ(load_le<uint32_t>(whole(buffer_at(one, words_of(one, 0).at(0x5024))).data()), 0x0e03U);
  EXPECT_EQ(tensor_at(one, 0x502C), (std::array<int64_t, 3>{0, 205, 0}));
  Case alone;
  alone.add(1, "dpu", {{0x4018, 0}, {0x4060, 0x402}, {0x5018, 0}, {0x5020, 0}, {0x5028, 0x18}, {0x502C, 0}});
  alone.c.j["operand_tensors"] = {{{"A", 1}, {"at16", 1}, {"C", 16384}, {"shift_word", "0xe01"}}};
  const auto dpu = capture_of(alone.c, kCompatible);
  ASSERT_TRUE(dpu.ok()) << dpu.error().message;
  EXPECT_EQ(tensor_at(dpu->submissions.at(0), 0x5020), (std::array<int64_t, 3>{1, 16384, 0xe01}));
  EXPECT_EQ(tensor_at(dpu->submissions.at(0), 0x502C), (std::array<int64_t, 3>{0, 819, 0}));
  Case product;
  product.add(1, "conv", {{0x4018, 0}, {0x40AC, 0xFFFFFFFC}});
  product.add(2, "dpu",
              {{0x4018, 0}, {0x407C, 0x810F4094}, {0x5018, 0}, {0x5020, 0}, {0x5034, 0x40000044}, {0x5038, 0}});
  const auto both = capture_of(product.c, kCompatible);
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(tensor_at(both->submissions.at(1), 0x5020), (std::array<int64_t, 3>{4, 1, 0}));
}

// A table and its user are tasks of one job, and so are windows of rows. Programs for the other core or for two are
// left out.
TEST(VendorCapture, ProgramsOfTheFirstCore) {
  Case made;
  made.add(1, "dpu", {{0x4018, 0}, {0x4104, 1}});
  made.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x5028, 0x1A}, {0x502C, 0}}, {{"cbuf_base", 0}});
  made.add(1, "conv", {{0x1088, 64}, {0x4018, 64}, {0x5028, 0}, {0x502C, 0}}, {{"cbuf_base", 4984}});
  made.add(1, "dpu", {{0x4018, 0}, {0x4104, 1}});
  made.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x5028, 0}, {0x502C, 0}}, {{"cbuf_base", 7168}});
  made.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x5028, 0}, {0x502C, 0}}, {{"cbuf_base", 0}});  // a half
  made.add(1, "conv", {{0x1088, 0}}, {{"cbuf_base", 0}, {"paired", true}});
  made.add(1, "conv", {{0x1088, 0}}, {{"cbuf_base", 0}, {"helper", true}});
  made.add(2, "ppu", {{0x701C, 0}, {0x6070, 0}});
  const auto out = capture_of(made.c, kCompatible);
  ASSERT_TRUE(out.ok()) << out.error().message;
  ASSERT_EQ(out->submissions.size(), 2U);
  ASSERT_EQ(out->submissions[0].jobs.at(0).commands.size(), 3U);
  const auto first = words_of(out->submissions[0], 1), second = words_of(out->submissions[0], 2);
  EXPECT_EQ(first.at(0x1088) + 64, second.at(0x1088));
  EXPECT_NE(first.at(0x502C), 0U);
  EXPECT_EQ(second.at(0x502C), 0U);
  EXPECT_EQ(out->submissions[1].jobs.at(0).commands.size(), 1U);
}

TEST(VendorCapture, ProgramsOfTheSecondCore) {
  Case made;
  made.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x1018, 1}}, {{"cbuf_base", 0}});
  made.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x1018, 2}}, {{"cbuf_base", 7168}});
  const auto out = capture_of(made.c, kCompatible, 1);
  ASSERT_TRUE(out.ok()) << out.error().message;
  ASSERT_EQ(out->submissions.size(), 1U);
  ASSERT_EQ(out->submissions[0].jobs.at(0).commands.size(), 1U);
  EXPECT_EQ(words_of(out->submissions[0], 0).at(0x1018), 2U);
  // Tables and pools are the same for both cores.
  Case both;
  for (const uint32_t base : {0U, 7168U}) {
    both.add(1, "dpu", {{0x4018, 0}, {0x4104, 1}});
    both.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x1018, base}}, {{"cbuf_base", base}});
    both.add(2, "ppu", {{0x701C, 0}, {0x6070, 0}});
  }
  const auto second = capture_of(both.c, kCompatible, 1);
  ASSERT_TRUE(second.ok()) << second.error().message;
  ASSERT_EQ(second->submissions.size(), 2U);
  ASSERT_EQ(second->submissions[0].jobs.at(0).commands.size(), 2U);
  EXPECT_EQ(words_of(second->submissions[0], 0).at(0x4104), 1U);
  EXPECT_EQ(words_of(second->submissions[0], 1).at(0x1018), 7168U);
  EXPECT_EQ(second->submissions[1].jobs.at(0).commands.size(), 1U);
}

// Inputs of float programs are numbers, and their bias is a float per channel.
TEST(VendorCapture, BuffersOfFloats) {
  Case made;
  made.add(1, "conv", {{0x1088, 0}, {0x4018, 0}, {0x5020, 0}});
  made.c.j["ops"] = {{"1", {{"type", "conv"}, {"precision", "f16"}}}};
  const std::filesystem::path folder = own_path("floats");
  std::filesystem::create_directories(folder);
  made.c.folder = folder;
  ASSERT_TRUE(write_file(folder / "bias.bin", Bytes{1, 2, 3, 4}).ok());
  made.c.j["buffers"] = {{{"role", "bias_f32"}, {"op", 1}, {"bytes", 4}, {"file", "bias.bin"}}};
  const auto out = capture_of(made.c, kCompatible);
  ASSERT_TRUE(out.ok()) << out.error().message;
  const auto& one = out->submissions.at(0);
  const auto words = words_of(one, 0);
  EXPECT_EQ(load_le<uint32_t>(whole(buffer_at(one, words.at(0x5020))).data()), 0x04030201U);
  const Bytes input = whole(buffer_at(one, words.at(0x1088)));
  EXPECT_EQ(input, half_inputs(input.size()));
}

// The names that decode and replay print.
TEST(VendorCapture, TasksHaveNames) {
  struct Row {
    const char *blocks, *named;
    uint32_t address, value;
  };
  const Row rows[] = {{"dpu", "LOAD TABLE", 0x4108, 0x00FF0000},  {"dpu", "ADD", 0x407C, 0x8002C0C0},
                      {"dpu", "MUL", 0x407C, 0x810F4094},         {"dpu", "TABLE", 0x407C, 0x01004140},
                      {"dpu", "ELEMENTWISE", 0x407C, 0x010041C1}, {"conv", "CONV", 0x407C, 0x010041C1},
                      {"conv", "CONV+ADD", 0x407C, 0x8002C0C0},   {"conv", "CONV+TABLE", 0x407C, 0x01004140}};
  const auto chip = npu::find_chip("rk3576");
  ASSERT_TRUE(chip.ok());
  const auto driver = npu::driver_of(*chip);
  ASSERT_TRUE(driver.ok());
  for (const Row& row : rows) {
    Case made;
    made.add(1, row.blocks, {{static_cast<uint16_t>(row.address), row.value}}, {}, 0x1001);
    const auto out = capture_of(made.c, kCompatible);
    ASSERT_TRUE(out.ok()) << out.error().message;
    const auto decoded = (*driver)->decode(*chip, out->submissions[0]);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    ASSERT_EQ(decoded->operations.size(), 1U);
    EXPECT_EQ(decoded->operations[0], row.named);
  }
}

TEST(VendorCapture, WhatIsWrongIsNamed) {
  const auto problem = [](const Case& made) {
    const auto out = capture_of(made.c, kCompatible);
    EXPECT_FALSE(out.ok());
    return out.ok() ? "" : out.error().message;
  };
  Case none;
  EXPECT_EQ(problem(none), "made-up: no program that the first core runs alone");
  Case cut;
  cut.add(1, "conv", {{0x1088, 0}, {0x4018, 0}});
  cut.c.program.resize(cut.c.program.size() - 1);
  EXPECT_EQ(problem(cut), "made-up/program.bin: shorter than its programs");
  for (const auto& [name, value] :
       {std::pair<const char*, json>{"enable", "none"}, {"op", "one"}, {"words", nullptr}}) {
    Case wrong;
    wrong.add(1, "conv", {{0x1088, 0}});
    wrong.c.j["tasks"][0][name] = value;
    EXPECT_NE(problem(wrong).find("made-up"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace skillet::golden
