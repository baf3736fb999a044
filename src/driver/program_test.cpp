#include "driver/program.h"

#include <gtest/gtest.h>

#include <functional>

#include "capture/packed_file.h"

namespace skillet::driver {
namespace {

Program sample() {
  Program program;
  program.chip = "toy";
  program.buffers = {{.name = "weights:op0", .role = BufferRole::constant, .size_bytes = 64, .contents = {1, 2, 3}},
                     {.name = "tensor:0", .role = BufferRole::input, .size_bytes = 128},
                     {.name = "tensor:1", .role = BufferRole::output, .size_bytes = 32}};
  program.buffer_relocations = {
      {0, {{.word_offset_bytes = 8, .target = 1, .target_offset_bytes = 64, .lsb = 4, .width = 26, .shift = 6}}}};
  program.init_jobs = {{.name = "init", .stream = {7, 8}}};
  program.jobs = {{.name = "op0",
                   .stream = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                   .relocations = {{.word_offset_bytes = 4, .target = 0}},
                   .buffers = {{0, true, false}, {1, true, false}, {2, false, true}},
                   .witness = {2, 20, 12}}};
  program.inputs = {{.tensor = 0, .buffer = 1, .size_bytes = 100, .xor_byte = 0x80}};
  program.outputs = {{.tensor = 1, .buffer = 2, .offset_bytes = 16, .size_bytes = 16, .layout = Layout::nchw_planar}};
  program.operations = {{.op = 0, .kind = "NN conv 3x3", .macs = 900}};
  program.debug_map = {{.buffer = 0, .offset_bytes = 8, .size_bytes = 56, .what = "weights", .operation = 0}};
  return program;
}

TEST(Program, PrintsAsText) {
  EXPECT_EQ(print(sample()),
            "program for toy\n"
            "buffer 0 constant 64 bytes \"weights:op0\" contents 3 bytes 743e13ee0c4ee5a5\n"
            "  reloc 0x0008 [29:4] = (buffer 1 + 0x40) >> 6\n"
            "buffer 1 input 128 bytes \"tensor:0\"\n"
            "buffer 2 output 32 bytes \"tensor:1\"\n"
            "input tensor 0 = buffer 1 + 0x0, 100 bytes nhwc xor 0x80\n"
            "output tensor 1 = buffer 2 + 0x10, 16 bytes nchw_planar\n"
            "operation 0 op 0 NN conv 3x3, 900 MACs\n"
            "init job \"init\" 2 words, buffers\n"
            "  0000: 00000007 00000008\n"
            "job \"op0\" 9 words, buffers 0:r 1:r 2:w, witness buffer 2 + 0x14, 12 bytes\n"
            "  0000: 00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008\n"
            "  0020: 00000009\n"
            "  reloc 0x0004 [31:0] = (buffer 0 + 0x0) >> 0\n");
}

TEST(Program, VerifyNamesWhatIsWrong) {
  EXPECT_TRUE(verify(sample()).ok());
  EXPECT_TRUE(verify(Program{}).ok());
  const auto expect = [](const std::string& message, const std::function<void(Program&)>& damage) {
    Program program = sample();
    damage(program);
    const auto result = verify(program);
    ASSERT_FALSE(result.ok()) << message;
    EXPECT_EQ(result.error().message, "program: " + message);
  };
  expect("buffer 'tensor:0': size 0", [](Program& p) { p.buffers[1].size_bytes = 0; });
  expect("buffer 'tensor:0': 4294967295 bytes; all buffers together exceed 4 GiB",
         [](Program& p) { p.buffers[1].size_bytes = UINT32_MAX; });
  expect("buffer 'weights:op0': contents of 3 bytes in 2", [](Program& p) { p.buffers[0].size_bytes = 2; });
  expect("buffer 'tensor:0': contents, but it is not constant", [](Program& p) { p.buffers[1].contents = {1}; });
  expect("relocations of buffer 3: no such buffer", [](Program& p) { p.buffer_relocations[0].buffer = 3; });
  const auto in_buffer = [&](const std::string& message, const std::function<void(Relocation&)>& damage) {
    expect("weights:op0: relocation at byte " + message,
           [&](Program& p) { damage(p.buffer_relocations[0].relocations[0]); });
  };
  in_buffer("61: not a word of the 64 bytes there", [](Relocation& r) { r.word_offset_bytes = 61; });
  in_buffer("64: not a word of the 64 bytes there", [](Relocation& r) { r.word_offset_bytes = 64; });
  in_buffer("8: bits leave the word", [](Relocation& r) { r.lsb = 7; });
  in_buffer("8: bits leave the word", [](Relocation& r) { r.width = 0; });
  in_buffer("8: shift 32", [](Relocation& r) { r.shift = 32; });
  in_buffer("8: no buffer 9", [](Relocation& r) { r.target = 9; });
  in_buffer("8: offset 129 in 'tensor:0', which has 128 bytes", [](Relocation& r) { r.target_offset_bytes = 129; });
  expect("job 'op0': stream: relocation at byte 36: not a word of the 36 bytes there",
         [](Program& p) { p.jobs[0].relocations[0].word_offset_bytes = 36; });
  expect("job 'init': no command words", [](Program& p) { p.init_jobs[0].stream.clear(); });
  expect("job 'op0': no buffer 3", [](Program& p) { p.jobs[0].buffers[1].buffer = 3; });
  expect("job 'op0': lists buffer 0 twice", [](Program& p) { p.jobs[0].buffers[1].buffer = 0; });
  expect("job 'op0': the stream points to buffer 'weights:op0', which the job does not list",
         [](Program& p) { p.jobs[0].buffers.erase(p.jobs[0].buffers.begin()); });
  expect("init job 'init' lists buffers", [](Program& p) { p.init_jobs[0].buffers = {{1, true, false}}; });
  expect("input tensor -1: no tensor", [](Program& p) { p.inputs[0].tensor = -1; });
  expect("input tensor 0: no buffer 8", [](Program& p) { p.inputs[0].buffer = 8; });
  expect("input tensor 0: buffer 'weights:op0' is constant", [](Program& p) {
    p.inputs[0].buffer = 0;
    p.inputs[0].size_bytes = 4;
  });
  expect("output tensor 1: 16 bytes at 17 leave buffer 'tensor:1' of 32 bytes",
         [](Program& p) { p.outputs[0].offset_bytes = 17; });
  expect("debug map: 'weights' leaves its buffer", [](Program& p) { p.debug_map[0].size_bytes = 57; });
  expect("debug map: 'weights': no operation 1", [](Program& p) { p.debug_map[0].operation = 1; });
}

// A second job like the first, with an output of its own behind it.
Program two_jobs() {
  Program program = sample();
  program.buffers[2].size_bytes = 64;
  program.jobs.push_back(program.jobs[0]);
  program.jobs[1].name = "op1";
  program.jobs[1].witness = {2, 32, 16};
  return program;
}

TEST(Program, VerifyWantsAWitnessOfEachJob) {
  ASSERT_TRUE(verify(two_jobs()).ok()) << verify(two_jobs()).error().message;
  struct Case {
    std::string message;  // empty: fine
    std::function<void(Program&)> change;
  };
  const Case cases[] = {
      {"",
       [](Program& p) {
         p.jobs[1].witness = {2, 63, 1};
       }},
      {"", [](Program& p) { p.jobs[1].buffers[2].write = false, p.jobs[1].witness = {}; }},
      {"", [](Program& p) { p.inputs.push_back(p.inputs[0]); }},
      {"job 'op1': writes buffers, but has no witness", [](Program& p) { p.jobs[1].witness = {}; }},
      {"job 'op1': witness in buffer 3, which does not exist", [](Program& p) { p.jobs[1].witness.buffer = 3; }},
      {"job 'op1': witness of 16 bytes at 49 in buffer 'tensor:1' of 64 bytes",
       [](Program& p) { p.jobs[1].witness.offset_bytes = 49; }},
      {"job 'op1': witness of 16 bytes at 18446744073709551615 in buffer 'tensor:1' of 64 bytes",
       [](Program& p) { p.jobs[1].witness.offset_bytes = UINT64_MAX; }},
      {"job 'op1': witness of 17 bytes at 32 in buffer 'tensor:1' of 64 bytes",
       [](Program& p) { p.jobs[1].witness.size_bytes = 17; }},
      {"job 'op1': witness in the constant buffer 'weights:op0'",
       [](Program& p) {
         p.jobs[1].buffers[0].write = true, p.jobs[1].witness = {0, 0, 16};
       }},
      {"job 'op1': witness in buffer 'tensor:0', which the job does not write",
       [](Program& p) {
         p.jobs[1].witness = {1, 110, 16};
       }},
      {"job 'op1': witness in buffer 'tensor:1', which the job does not write",
       [](Program& p) { p.jobs[1].buffers[2].write = false; }},
      {"job 'op0' and job 'op1': the witness of a job lies in bytes of the other",
       [](Program& p) {
         p.jobs[1].witness = {2, 31, 16};
       }},
      {"job 'op1' and job 'op0': the witness of a job lies in bytes of the other",
       [](Program& p) {
         p.jobs[1].witness = {2, 5, 16};
       }},
      {"job 'op1' and input tensor 7: the witness of a job lies in bytes of the other",
       [](Program& p) { p.inputs.push_back({.tensor = 7, .buffer = 2, .offset_bytes = 47, .size_bytes = 9}); }},
      {"job 'op1' and input tensor 7: the witness of a job lies in bytes of the other",
       [](Program& p) { p.inputs.push_back({.tensor = 7, .buffer = 2, .offset_bytes = 32, .size_bytes = 1}); }},
      {"input tensor 7 and job 'op1': the witness of a job lies in bytes of the other",
       [](Program& p) {  // behind a job and a smaller input that both begin later
         p.jobs[0].witness = {2, 0, 1};
         p.inputs.push_back({.tensor = 7, .buffer = 2, .offset_bytes = 2, .size_bytes = 62});
         p.inputs.push_back({.tensor = 8, .buffer = 2, .offset_bytes = 3, .size_bytes = 1});
       }},
  };
  for (const Case& c : cases) {
    Program program = two_jobs();
    c.change(program);
    const auto result = verify(program);
    EXPECT_EQ(result.ok() ? "" : result.error().message, c.message.empty() ? "" : "program: " + c.message);
  }
}

TEST(ProgramFile, RefusesOtherVersions) {
  Bytes file = serialise(sample()).value();
  file[8] = 1;
  EXPECT_EQ(deserialise(file).error().message, "program file of version 1; this build reads version 2");
}

TEST(ProgramFile, ReadsWhatItWrites) {
  for (const Program& program : {Program{}, sample()}) {
    const auto back = deserialise(serialise(program).value());
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, program);
  }
}

TEST(ProgramFile, RefusesTruncationsAndFlippedBits) {
  const Bytes file = serialise(sample()).value();
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(deserialise(std::span(file).first(size)).ok()) << size;
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_FALSE(deserialise(flipped).ok()) << "bit " << bit;
  }
}

// Damage behind a correct checksum: an error, or a program that verifies.
TEST(ProgramFile, SurvivesDamagedRecords) {
  const capture::PackedFormat format{
      .magic = {'S', 'K', 'I', 'L', 'P', 'R', 'G', '\n'}, .version = 2, .what = "program", .limit_bytes = 1 << 20};
  const auto records = capture::unpack_records(format, serialise(sample()).value()).value();
  ASSERT_EQ(records.size(), 1u);
  int refused = 0;
  for (size_t at = 0; at < records[0].bytes.size(); ++at) {
    for (const uint8_t flip : {0xFF, 0x01, 0x80}) {
      auto damaged = records;
      damaged[0].bytes[at] ^= flip;
      const auto program = deserialise(capture::pack_records(format, damaged).value());
      EXPECT_TRUE(!program.ok() || verify(*program).ok());
      refused += program.ok() ? 0 : 1;
    }
    auto cut = records;
    cut[0].bytes.resize(at);
    EXPECT_FALSE(deserialise(capture::pack_records(format, cut).value()).ok()) << at;
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace skillet::driver
