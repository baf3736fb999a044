#include "program/program.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <functional>

#include "base/zstd_frame.h"
#include "program_generated.h"

namespace skillet::npu {
namespace {

Bytes words(std::initializer_list<uint32_t> values) {
  const auto bytes = as_bytes({values.begin(), values.size()});
  return {bytes.begin(), bytes.end()};
}

Program sample() {
  Program program;
  program.chip = "toy";
  program.buffers = {
      {.name = "weights:op0",
       .role = BufferRole::constant,
       .size_bytes = 64,
       .contents = Bytes{1, 2, 3},
       .relocations = {{.at_byte = 9, .target = 1, .target_offset_bytes = 64, .lsb = 4, .width_bits = 26, .shift = 6}}},
      {.name = "tensor:0", .role = BufferRole::input, .size_bytes = 128},
      {.name = "tensor:1", .role = BufferRole::output, .size_bytes = 32},
      {.name = "commands",
       .role = BufferRole::commands,
       .size_bytes = 44,
       .contents = words({7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
       .relocations = {{.at_byte = 12, .target = 0}}}};
  program.init_jobs = {{.name = "init", .commands = {{3, 0, 8}}}};
  program.jobs = {{.name = "op0",
                   .commands = {{3, 8, 36}},
                   .uses = {{0, true, false}, {1, true, false}, {2, false, true}},
                   .witness = {2, 20, 12}}};
  const ImageShape image{.height = 5, .width = 5, .channels = 4}, vector{.channels = 16};
  program.inputs = {{.tensor = 0, .buffer = 1, .shape = image, .layout = nhwc_layout(image, 0x80)}};
  program.outputs = {{.tensor = 1, .buffer = 2, .offset_bytes = 16, .shape = vector, .layout = planar_layout(vector)}};
  program.operations = {{.op = 0, .kind = "NN conv 3x3", .macs = 900}};
  program.debug_map = {{.buffer = 0, .offset_bytes = 8, .size_bytes = 56, .what = "weights", .operation = 0}};
  return program;
}

TEST(Program, PrintsAsText) {
  EXPECT_EQ(
      print(sample()),
      "program for toy\n"
      "buffer 0 constant 64 bytes \"weights:op0\" contents 3 bytes 743e13ee0c4ee5a5\n"
      "  reloc 0x0009 [29:4] = (buffer 1 + 0x40) >> 6\n"
      "buffer 1 input 128 bytes \"tensor:0\"\n"
      "buffer 2 output 32 bytes \"tensor:1\"\n"
      "buffer 3 commands 44 bytes \"commands\" contents 44 bytes 7f410b6233000e10\n"
      "  reloc 0x000c [31:0] = (buffer 0 + 0x0) >> 0\n"
      "input tensor 0 = buffer 1 + 0x0, block 4, strides elem 1 px 4 row 20 block 4 image 100, 100 bytes, xor 0x80\n"
      "output tensor 1 = buffer 2 + 0x10, block 1, strides elem 1 px 1 row 1 block 1 image 16, 16 bytes\n"
      "operation 0 op 0 NN conv 3x3, 900 MACs\n"
      "init job \"init\" uses\n"
      "  commands buffer 3 + 0x0, 8 bytes\n"
      "  0000: 00000007 00000008\n"
      "job \"op0\" uses 0:r 1:r 2:w, witness buffer 2 + 0x14, 12 bytes\n"
      "  commands buffer 3 + 0x8, 36 bytes\n"
      "  0000: 00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008\n"
      "  0020: 00000009\n");
}

TEST(Program, PrintsWhereAndAfterWhatAJobRuns) {
  Program program = sample();
  program.jobs[0].sram_bytes = 4096;
  program.jobs[0].core = 2;
  program.jobs[0].after = {0, 3};
  EXPECT_NE(print(program).find("12 bytes, 4096 bytes on chip, core 2, after 0 3\n"), std::string::npos)
      << print(program);
}

void expect_wrong(const std::string& message, const std::function<void(Program&)>& damage) {
  Program program = sample();
  damage(program);
  const auto result = verify(program);
  ASSERT_FALSE(result.ok()) << message;
  EXPECT_EQ(result.error().message, "program: " + message);
}

// The last word may be incomplete: missing bytes are 0.
TEST(Program, PrintsCommandsOfAnyLength) {
  const std::string words[] = {" 44332211", " 88776655", " 000000aa", " 0000bbaa", " 00ccbbaa", " ddccbbaa"};
  for (uint64_t odd = 1; odd <= 4; ++odd) {
    Program program;
    program.buffers = {{.name = "commands", .role = BufferRole::commands, .size_bytes = 12}};
    program.buffers[0].contents = Bytes{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd};
    program.jobs = {{.name = "j", .commands = {{0, 0, 8 + odd}}}};
    const std::string text = print(program);
    EXPECT_TRUE(text.ends_with("  0000:" + words[0] + words[1] + words[1 + odd] + "\n")) << text;
  }
}

TEST(Program, VerifyTakesWhatIsRight) {
  EXPECT_TRUE(verify(sample()).ok());
  EXPECT_TRUE(verify(Program{}).ok());
}

TEST(Program, VerifyNamesWrongAlignments) {
  for (const uint32_t align : {3U, 96U, 8192U, 1U << 31}) {
    expect_wrong(fmt::format("constants at multiples of {} bytes", align),
                 [&](Program& p) { p.constant_align = align; });
  }
  for (const uint32_t align : {0U, 1U, 64U, 4096U}) {
    Program program = sample();
    program.constant_align = align;
    EXPECT_TRUE(verify(program).ok()) << align;
  }
}

TEST(Program, VerifyNamesWrongBuffers) {
  expect_wrong("buffer 'tensor:0': size 0", [](Program& p) { p.buffers[1].size_bytes = 0; });
  expect_wrong("buffer 'tensor:0': 18446744073709551615 bytes; all buffers together exceed 1 TiB",
               [](Program& p) { p.buffers[1].size_bytes = UINT64_MAX; });
  expect_wrong("buffer 'weights:op0': contents of 3 bytes in 2", [](Program& p) { p.buffers[0].size_bytes = 2; });
  expect_wrong("buffer 'tensor:0': contents, but it is not constant",
               [](Program& p) { p.buffers[1].contents = Bytes{1}; });
  expect_wrong("buffer 'tensor:0': contents, but it is not constant",
               [](Program& p) { p.buffers[1].relocations = {{.target = 0}}; });
  expect_wrong("buffer 'commands': 44 bytes of commands in 45", [](Program& p) { p.buffers[3].size_bytes = 45; });
}

TEST(Program, VerifyNamesWrongRelocations) {
  const auto in_buffer = [](const std::string& message, const std::function<void(Relocation&)>& damage) {
    expect_wrong("weights:op0: relocation at byte " + message,
                 [&](Program& p) { damage(p.buffers[0].relocations[0]); });
  };
  in_buffer("61: is outside the 64 bytes there", [](Relocation& r) { r.at_byte = 61; });
  in_buffer("64: is outside the 64 bytes there", [](Relocation& r) { r.at_byte = 64; });
  in_buffer("18446744073709551615: is outside the 64 bytes there", [](Relocation& r) { r.at_byte = UINT64_MAX; });
  in_buffer("9: its bits are not in 1 to 8 bytes", [](Relocation& r) { r.lsb = 39; });
  in_buffer("9: its bits are not in 1 to 8 bytes", [](Relocation& r) { r.width_bits = 0; });
  in_buffer("9: shift 64", [](Relocation& r) { r.shift = 64; });
  in_buffer("9: no buffer 9", [](Relocation& r) { r.target = 9; });
  in_buffer("9: offset 129 in 'tensor:0', which has 128 bytes", [](Relocation& r) { r.target_offset_bytes = 129; });
}

TEST(Program, VerifyNamesWrongJobs) {
  expect_wrong("job 'init': no commands", [](Program& p) { p.init_jobs[0].commands.clear(); });
  const auto in_commands = [](const std::string& message, const std::function<void(ByteRange&)>& damage) {
    expect_wrong("job 'op0': " + message, [&](Program& p) { damage(p.jobs[0].commands[0]); });
  };
  in_commands("commands in buffer 4, which does not exist", [](ByteRange& r) { r.buffer = 4; });
  in_commands("36 bytes of commands at 8 in buffer 'weights:op0' of 64 bytes", [](ByteRange& r) { r.buffer = 0; });
  in_commands("36 bytes of commands at 9 in buffer 'commands' of 44 bytes", [](ByteRange& r) { r.offset_bytes = 9; });
  in_commands("0 bytes of commands at 8 in buffer 'commands' of 44 bytes", [](ByteRange& r) { r.size_bytes = 0; });
  expect_wrong("job 'op0': no buffer 4", [](Program& p) { p.jobs[0].uses[1].buffer = 4; });
  expect_wrong("job 'op0': lists buffer 0 twice", [](Program& p) { p.jobs[0].uses[1].buffer = 0; });
  expect_wrong("job 'op0': writes the constant buffer 'weights:op0'",
               [](Program& p) { p.jobs[0].uses[0].write = true; });
  expect_wrong("job 'op0': the commands point to buffer 'weights:op0', which the job does not list",
               [](Program& p) { p.jobs[0].uses.erase(p.jobs[0].uses.begin()); });
  expect_wrong("job 'op0': comes after job 0, which is not an earlier job", [](Program& p) { p.jobs[0].after = {0}; });
  expect_wrong("init job 'init' lists buffers", [](Program& p) { p.init_jobs[0].uses = {{1, true, false}}; });
}

TEST(Program, VerifyNamesWrongBindingsAndDebugMaps) {
  expect_wrong("input tensor -1: no tensor", [](Program& p) { p.inputs[0].tensor = -1; });
  expect_wrong("input tensor 0: no buffer 8", [](Program& p) { p.inputs[0].buffer = 8; });
  expect_wrong("input tensor 0: buffer 'weights:op0' is constant", [](Program& p) {
    p.inputs[0].buffer = 0;
    p.inputs[0].shape = {.channels = 4};
    p.inputs[0].layout = nhwc_layout({.channels = 4});
  });
  expect_wrong("output tensor 1: 16 bytes at 17 are outside buffer 'tensor:1' of 32 bytes",
               [](Program& p) { p.outputs[0].offset_bytes = 17; });
  expect_wrong(
      "input tensor 0: layout (block 4, strides elem 1 px 4 row 20 block 4 image 100, 100 bytes, xor 0x80): a tensor "
      "with an invalid size",
      [](Program& p) { p.inputs[0].shape.height = int64_t{1} << 62; });
  expect_wrong("debug map: 'weights' is outside its buffer", [](Program& p) { p.debug_map[0].size_bytes = 57; });
  expect_wrong("debug map: 'weights': no operation 1", [](Program& p) { p.debug_map[0].operation = 1; });
}

// A second job like the first, whose own output follows the first one's.
Program two_jobs() {
  Program program = sample();
  program.buffers[2].size_bytes = 64;
  program.jobs.push_back(program.jobs[0]);
  program.jobs[1].name = "op1";
  program.jobs[1].witness = {2, 32, 16};
  return program;
}

struct WitnessCase {
  std::string message;  // empty: valid
  std::function<void(Program&)> change;
};
const WitnessCase kWitnessCases[] = {
    {"",
     [](Program& p) {
       p.jobs[1].witness = {2, 63, 1};
     }},
    {"", [](Program& p) { p.jobs[1].uses[2].write = false, p.jobs[1].witness = {}; }},
    {"", [](Program& p) { p.inputs.push_back(p.inputs[0]); }},
    {"job 'op1': writes buffers, but has no witness", [](Program& p) { p.jobs[1].witness = {}; }},
    {"job 'op1': witness in buffer 4, which does not exist", [](Program& p) { p.jobs[1].witness.buffer = 4; }},
    {"job 'op1': witness of 16 bytes at 49 in buffer 'tensor:1' of 64 bytes",
     [](Program& p) { p.jobs[1].witness.offset_bytes = 49; }},
    {"job 'op1': witness of 16 bytes at 18446744073709551615 in buffer 'tensor:1' of 64 bytes",
     [](Program& p) { p.jobs[1].witness.offset_bytes = UINT64_MAX; }},
    {"job 'op1': witness of 17 bytes at 32 in buffer 'tensor:1' of 64 bytes",
     [](Program& p) { p.jobs[1].witness.size_bytes = 17; }},
    {"job 'op1': witness in the constant buffer 'weights:op0'",
     [](Program& p) {
       p.jobs[1].witness = {0, 0, 16};
     }},
    {"job 'op1': witness in buffer 'tensor:0', which the job does not write",
     [](Program& p) {
       p.jobs[1].witness = {1, 110, 16};
     }},
    {"job 'op1': witness in buffer 'tensor:1', which the job does not write",
     [](Program& p) { p.jobs[1].uses[2].write = false; }},
    {"job 'op0' and job 'op1': the witness of one overlaps the other",
     [](Program& p) {
       p.jobs[1].witness = {2, 31, 16};
     }},
    {"job 'op1' and job 'op0': the witness of one overlaps the other",
     [](Program& p) {
       p.jobs[1].witness = {2, 5, 16};
     }},
    {"job 'op1' and input tensor 7: the witness of one overlaps the other",
     [](Program& p) {
       p.inputs.push_back({.tensor = 7,
                           .buffer = 2,
                           .offset_bytes = 47,
                           .shape = {.channels = 9},
                           .layout = nhwc_layout({.channels = 9})});
     }},
    {"job 'op1' and input tensor 7: the witness of one overlaps the other",
     [](Program& p) {
       p.inputs.push_back({.tensor = 7,
                           .buffer = 2,
                           .offset_bytes = 32,
                           .shape = {.channels = 1},
                           .layout = nhwc_layout({.channels = 1})});
     }},
    {"input tensor 7 and job 'op1': the witness of one overlaps the other",
     [](Program& p) {  // after a job and a smaller input that both begin later
       p.jobs[0].witness = {2, 0, 1};
       p.inputs.push_back({.tensor = 7,
                           .buffer = 2,
                           .offset_bytes = 2,
                           .shape = {.channels = 62},
                           .layout = nhwc_layout({.channels = 62})});
       p.inputs.push_back({.tensor = 8,
                           .buffer = 2,
                           .offset_bytes = 3,
                           .shape = {.channels = 1},
                           .layout = nhwc_layout({.channels = 1})});
     }},
};

TEST(Program, VerifyWantsAWitnessOfEachJob) {
  ASSERT_TRUE(verify(two_jobs()).ok()) << verify(two_jobs()).error().message;
  for (const WitnessCase& c : kWitnessCases) {
    Program program = two_jobs();
    c.change(program);
    const auto result = verify(program);
    EXPECT_EQ(result.ok() ? "" : result.error().message, c.message.empty() ? "" : "program: " + c.message);
  }
}

TEST(ProgramFile, RefusesOtherVersions) {
  Bytes file = serialise(sample(), true).value();
  file[8] = 1;
  EXPECT_EQ(deserialise(file).error().message,
            "program file of version 1; this build reads version 3: compile it again");
}

TEST(ProgramFile, ReadsWhatItWrites) {
  for (const Program& program : {Program{}, sample()}) {
    for (const bool packed : {false, true}) {
      const auto back = deserialise(serialise(program, packed).value());
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(*back, program);
    }
  }
}

// Without compression, contents refer to the file, with the alignment that a device's memory may need.
TEST(ProgramFile, ContentsStayInTheFile) {
  const SharedBytes file = serialise(sample(), false).value();
  const Program program = deserialise(file).value();
  for (const Buffer& buffer : program.buffers) {
    if (buffer.contents.empty()) continue;
    const auto offset = static_cast<size_t>(buffer.contents.data() - file.data());
    EXPECT_LT(offset, file.size()) << buffer.name;
    EXPECT_EQ(offset % 64, 0u) << buffer.name;
  }
}

TEST(ProgramFile, RefusesTruncationsAndFlippedBits) {
  for (const bool packed : {false, true}) {
    const Bytes file = serialise(sample(), packed).value();
    for (size_t size = 0; size < file.size(); ++size)
      EXPECT_FALSE(deserialise(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(size))).ok()) << size;
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      Bytes flipped = file;
      flipped[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
      EXPECT_FALSE(deserialise(flipped).ok()) << "bit " << bit;
    }
  }
}

// Corrects the checksum of the header's fields and of the rest of the file.
void correct_checksum(Bytes& file) {
  const uint64_t seed = XXH3_64bits(file.data(), 32);
  store_le(file.data() + 32, XXH3_64bits_withSeed(file.data() + 64, file.size() - 64, seed));
}

// Damage with a correct checksum: an error, or a program that verifies.
TEST(ProgramFile, SurvivesDamagedTables) {
  const Bytes file = serialise(sample(), false).value();
  int refused = 0;
  for (size_t at = 64; at < file.size(); ++at) {
    for (const uint8_t flip : {0xFF, 0x01, 0x80}) {
      Bytes damaged = file;
      damaged[at] ^= flip;
      correct_checksum(damaged);
      const auto program = deserialise(damaged);
      EXPECT_TRUE(!program.ok() || verify(*program).ok());
      refused += program.ok() ? 0 : 1;
    }
    Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(at));
    store_le<uint64_t>(cut.data() + 16, cut.size() - 64);
    store_le<uint64_t>(cut.data() + 24, cut.size() - 64);
    correct_checksum(cut);
    const auto program = deserialise(cut);
    EXPECT_TRUE(!program.ok() || verify(*program).ok()) << at;
  }
  EXPECT_GT(refused, 300);
}

// A file with the right checksum that contains `table`.
Bytes file_of(std::span<const uint8_t> table, bool packed) {
  const Bytes sample_file = serialise(sample(), false).value();
  Bytes file(sample_file.begin(), sample_file.begin() + 64);
  const Bytes frame = packed ? pack_zstd(table).value() : Bytes(table.begin(), table.end());
  file.insert(file.end(), frame.begin(), frame.end());
  store_le<uint32_t>(file.data() + 12, packed ? 1 : 0);
  store_le<uint64_t>(file.data() + 16, table.size());
  store_le<uint64_t>(file.data() + 24, frame.size());
  correct_checksum(file);
  return file;
}

// A few bytes and very many zeros, which a loaded program would have to hold.
TEST(ProgramFile, BoundsConstantsWithTheirZeros) {
  for (const bool packed : {false, true}) {
    Program program = sample();
    program.buffers[0].size_bytes = (1ULL << 30) - program.buffers[3].size_bytes;
    const auto most = serialise(program, packed);
    ASSERT_TRUE(most.ok());
    EXPECT_TRUE(deserialise(*most).ok());
    ++program.buffers[0].size_bytes;
    EXPECT_FALSE(serialise(program, packed).ok());
  }
  Bytes file = serialise(sample(), false).value();
  int refused = 0;
  for (size_t at = 64; at + 4 <= file.size(); at += 4) {
    if (load_le<uint32_t>(file.data() + at) != 64) continue;  // the size of the weights is one of these
    Bytes damaged = file;
    store_le<uint32_t>(damaged.data() + at, 0x7fffffff);
    correct_checksum(damaged);
    const auto program = deserialise(damaged);
    if (!program.ok()) refused += program.error().message.find("zeros included") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(refused, 1);
}

TEST(ProgramFile, SmallFilesGetLittleMemory) {
  const auto error_of = [](const Bytes& file) {
    EXPECT_LT(file.size(), 200'000u);
    const auto program = deserialise(file);
    return program.ok() ? "" : program.error().message;
  };
  EXPECT_NE(error_of(file_of(Bytes(200 << 20), true)).find("more than the limit"), std::string::npos);
  // One operation with 64 KiB of text, listed twenty thousand times.
  flatbuffers::FlatBufferBuilder to;
  const auto one = fb::CreateOperation(to, 0, to.CreateString(std::string(65536, 'x')), 1);
  const std::vector<flatbuffers::Offset<fb::Operation>> operations(20'000, one);
  const auto list = to.CreateVector(operations);
  fb::ProgramBuilder program(to);
  program.add_operations(list);
  fb::FinishProgramBuffer(to, program.Finish());
  const std::string message = error_of(file_of({to.GetBufferPointer(), to.GetSize()}, false));
  EXPECT_NE(message.find("the same bytes too often"), std::string::npos) << message;
}

}  // namespace
}  // namespace skillet::npu
