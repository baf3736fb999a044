// Conditions for an operation of Vela to be supported, and the program made of it.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>

#include "npu/driver.h"
#include "npu/testing/open_questions.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/payload.h"
#include "npus/ethosu/compiler/support.h"
#include "npus/ethosu/hw/kernel_rules.h"
#include "npus/ethosu/hw/testing/streams.h"

namespace skillet::npus::ethosu {
namespace {

// COP1, for an Ethos-U55-128, with only a stop.
const std::vector<uint32_t> kPayload = {hw::kPayloadMark, 0x00100001, 0x00001807, 0x10066001, 5,
                                        0x00010002,       0xFFFF0000};

ir::Graph graph_of(const std::vector<uint32_t>& payload) {
  ir::Graph graph = ir::parse(R"(graph "g"
tensor 0 "commands" uint8 4 const=zeros:4
tensor 1 "constants" uint8 16 const=zeros:16
tensor 2 "arena" uint8 64 const=zeros:64
tensor 3 "in" int8 1x2x2x4 scale=0.5 zero=0 planned=32
tensor 4 "out" int8 1x2x2x4 scale=0.5 zero=0 planned=48
inputs 3
outputs 4
op 0 "ethos-u" in=[0 1 2 2 3] out=[4]
)")
                        .value();
  const auto bytes = as_bytes(std::span<const uint32_t>(payload));
  graph.tensor(0).shape.dims = {static_cast<int32_t>(bytes.size())};
  ir::set_constant(graph.tensor(0), Bytes(bytes.begin(), bytes.end()));
  return graph;
}

std::string reason(const ir::Graph& graph, std::string_view chip = "ethos-u55-128") {
  const npu::Chip found = npu::find_chip(chip).value();
  const npu::Support support = npu::driver_of(found).value()->supports(found, graph, 0);
  return support.ok ? "" : support.reason;
}

TEST(Ethosu, WhatIsTakenAndWhatIsNot) {
  EXPECT_EQ(reason(graph_of(kPayload)), "");
  EXPECT_EQ(reason(graph_of(kPayload), "ethos-u55-64"),
            "it was compiled for ethos-u55-128; this chip is an ethos-u55-64");
  struct Case {
    const char* says;
    std::function<void(std::vector<uint32_t>&)> forge;
  };
  const Case payloads[] = {
      {"does not begin with COP1", [](auto& p) { p[0] ^= 1; }},
      {"does not begin with COP1", [](auto& p) { p.clear(); }},
      {"has format COP2, which is not supported", [](auto& p) { p[0] = 0x32504F43; }},
      {"ends within the accelerator's description", [](auto& p) { p.resize(3); }},
      {"word 4 of its first operand, 0x00000009, has no meaning", [](auto& p) { p[4] = 9; }},
      {"has 1 words of commands instead of 2", [](auto& p) { p[5] = 0x00020002; }},
      {"does not name the accelerator", [](auto& p) { p[1] = p[2] = p[3] = 5; }},
      {"has no commands", [](auto& p) { p.resize(5); }},
      {"another accelerator (32768 multiply-adds a cycle of product 2)", [](auto& p) { p[2] = 0x2000180F; }},
      {"command version 1, architecture 1.0, which is not supported", [](auto& p) { p[2] ^= 1U << 4; }},
      {"command version 0, architecture 3.0, which is not supported", [](auto& p) { p[3] ^= 2U << 28; }},
      {"architecture 1.0 and a DMA unit of the vendor, which is not supported", [](auto& p) { p[2] ^= 1U << 27; }},
      {"it was compiled for ethos-u85-256", [](auto& p) { p[2] = 0x20001808; }},
  };
  for (const Case& c : payloads) {
    std::vector<uint32_t> payload = kPayload;
    c.forge(payload);
    EXPECT_NE(reason(graph_of(payload)).find(c.says), std::string::npos) << reason(graph_of(payload));
  }
  const std::pair<const char*, std::function<void(ir::Graph&)>> graphs[] = {
      {"the file lacks the place of 'in'", [](auto& g) { g.tensor(3).planned_at.reset(); }},
      {"'out', 16 bytes at 49, is outside its memory of 64", [](auto& g) { g.tensor(4).planned_at = 49; }},
      {"'in', 16 bytes at 18446744073709551615, is outside", [](auto& g) { g.tensor(3).planned_at = UINT64_MAX; }},
      {"it has 4 operands", [](auto& g) { g.ops[0].inputs.resize(4); }},
      {"its operand 2 is missing", [](auto& g) { g.ops[0].inputs[2] = ir::kNoTensor; }},
      {"its operand 3 is missing", [](auto& g) { g.ops[0].inputs[3] = g.add_tensor(g.tensor(3)); }},
      {"its operand 4, 'in', is a constant", [](auto& g) { ir::set_constant(g.tensor(3), Bytes(16)); }},
      {"Skillet has no other for this chip", [](auto& g) { g.ops[0].opaque_name = "other"; }},
      {"Vela compiled the network in several parts", [](auto& g) { g.ops.push_back(g.ops[0]); }},
  };
  for (const auto& [says, forge] : graphs) {
    ir::Graph graph = graph_of(kPayload);
    forge(graph);
    EXPECT_NE(reason(graph).find(says), std::string::npos) << reason(graph);
  }
}

// With padding the chip itself divides by the number of existing pixels; otherwise a scale divides.
TEST(Ethosu, AnAverageHasTheScaleOfItsWindow) {
  for (const auto& [padding, size, scale] : {std::tuple{"same", 8, Scale{1, 0}}, {"valid", 6, Scale{0xE38E38E5, 35}}}) {
    const ir::Graph graph = ir::parse(fmt::format(R"(graph "g"
tensor 0 "in" int8 1x8x8x4 scale=0.5 zero=3
tensor 1 "out" int8 1x{0}x{0}x4 scale=0.5 zero=3
inputs 0
outputs 1
op 0 AVERAGE_POOL_2D in=[0] out=[1] padding={1} filter_h=3 filter_w=3
)",
                                                  size, padding))
                                .value();
    const Lowered lowered = lower(graph, 0);
    ASSERT_EQ(lowered.operations.size(), 1U) << lowered.support.reason;
    EXPECT_EQ(lowered.operations[0].scale, scale) << padding;
  }
}

TEST(Ethosu, AProgramHasItsRegionsAndItsTensors) {
  const npu::Chip chip = npu::find_chip("ethos-u55-128").value();
  const auto program = npu::driver_of(chip).value()->compile(chip, graph_of(kPayload), {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_TRUE(npu::verify(*program).ok()) << npu::verify(*program).error().message;
  ASSERT_EQ(program->jobs.size(), 1U);
  ASSERT_EQ(program->inputs.size(), 1U);
  EXPECT_EQ(program->inputs[0].offset_bytes, 32U);
  EXPECT_EQ(program->outputs[0].offset_bytes, 48U);
  EXPECT_EQ(program->buffers[program->inputs[0].buffer].size_bytes, 64U);
}

// Vela's payload, with another stream in it.
std::vector<uint32_t> payload_of(const hw::Words& stream) {
  std::vector<uint32_t> payload(kPayload.begin(), kPayload.begin() + 5);
  const auto count = static_cast<uint32_t>(stream.size());
  payload.push_back(2 | (count & 0xFFFF) << 16 | (count >> 16 & 0xFF) << 8);
  payload.insert(payload.end(), stream.begin(), stream.end());
  return payload;
}

TEST(Ethosu, RegionsThatTheFileHasNothingForAreRefused) {
  for (const auto& [from, to, says] : {std::tuple{1U, 0U, "it writes its constants"},
                                       {3U, 1U, "it uses region 3, for which the file has no data"},
                                       {1U, 7U, "it uses region 7, for which the file has no data"},
                                       {0U, 1U, ""}}) {
    hw::Words stream;
    hw::add_copy(stream, from, 0, to, 0, 16);
    hw::add_stop(stream);
    const std::string said = reason(graph_of(payload_of(stream)));
    EXPECT_EQ(said, *says == '\0' ? "" : std::string("Linux's driver does not accept its commands: ") + says);
  }
}

TEST(Ethosu, CommandsThatLeaveTheMemoryOfTheFileAreRefused) {
  for (const auto& [from, to, at, says] :
       {std::tuple{0U, 1U, 48U, ""},
        {0U, 1U, 49U, "its commands use 65 bytes of region 1, but the file has 64 for it"},
        {1U, 1U, 1U << 31, "its commands use 2147483664 bytes of region 1, but the file has 64 for it"}}) {
    hw::Words stream;
    hw::add_copy(stream, from, 0, to, at, 16);
    hw::add_stop(stream);
    EXPECT_EQ(reason(graph_of(payload_of(stream))), says);
  }
  hw::Words stream;
  hw::add_copy(stream, 0, 1, 1, 0, 16);
  hw::add_stop(stream);
  EXPECT_EQ(reason(graph_of(payload_of(stream))), "its commands use 17 bytes of region 0, but the file has 16 for it");
  for (const auto& [bytes, says] :
       {std::pair(16, ""), {15, "its commands use 16 bytes of region 2, but the file has 15 for it"}}) {
    hw::Words fast;
    hw::add_copy(fast, 0, 0, 2, 0, 16);
    hw::add_stop(fast);
    ir::Graph graph = graph_of(payload_of(fast));
    graph.ops[0].inputs[3] = graph.add_tensor(graph.tensor(2));
    graph.tensor(graph.ops[0].inputs[3]).shape.dims = {bytes};
    ir::set_constant(graph.tensor(graph.ops[0].inputs[3]), Bytes(static_cast<size_t>(bytes)));
    EXPECT_EQ(reason(graph), says);
  }
}

// Fast memory that is the arena uses the arena's region; otherwise it is on the chip.
TEST(Ethosu, FastMemoryIsTheArenaOrOnTheChip) {
  const npu::Chip chip = npu::find_chip("ethos-u55-128").value();
  hw::Words stream;
  hw::add_copy(stream, 0, 0, 2, 32, 16);
  add(stream, hw::Dma0DstRegion{.region = 2, .internal = true}), add(stream, hw::OpDmaStart{});
  hw::add_stop(stream);
  for (const bool is_arena : {true, false}) {
    ir::Graph graph = graph_of(payload_of(stream));
    if (!is_arena) {
      const ir::TensorId fast = graph.add_tensor(graph.tensor(2));
      graph.ops[0].inputs[3] = fast;
    }
    const auto program = npu::driver_of(chip).value()->compile(chip, graph, {});
    ASSERT_TRUE(program.ok()) << program.error().message;
    const npu::Job& job = program->jobs.at(0);
    std::vector<int> regions;
    for (const npu::BufferUse& use : job.uses) regions.push_back(use.slot);
    EXPECT_EQ(regions, (std::vector<int>{0, 1, 7}));
    EXPECT_EQ(job.sram_bytes, is_arena ? 0U : 64U);
    const auto bytes = npu::bytes_of(*program, job.commands.at(0));
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    const hw::StreamNeeds needs = hw::needs_of(words).value();
    EXPECT_EQ(needs.bytes[is_arena ? 1 : 2], 48U);
    EXPECT_EQ(needs.bytes[is_arena ? 2 : 1], is_arena ? 0U : 16U);
    EXPECT_EQ(std::ranges::count(words, hw::Dma0DstRegion::kAddress | 2U << 16 | 1U << 24), 1) << "SHRAM is no region";
  }
}

// Registers stay in force, and those of transfers are not fields of other operations.
npu::Annotated decoded(const hw::Words& stream, npu::Detail detail = npu::Detail::full) {
  capture::Submission submission{.parameters = {}, .jobs = capture::one_list(stream), .buffers = {}};
  for (const uint32_t region : {0U, 1U})
    submission.buffers.push_back(
        {.handle = region + 1, .address = uint64_t{region + 1} << 36, .size_bytes = 4096, .listed = true});
  const npu::Chip chip = npu::find_chip("imx93").value();
  return npu::driver_of(chip).value()->decode_as(chip, submission, detail).value();
}

hw::Words two_operations() {
  hw::Words stream;
  hw::add_abs_registers(stream, 2, 3, 4, 200, 2048);
  hw::add_copy(stream, 0, 16, 1, 300, 256);
  add(stream, hw::OpDmaWait{});
  add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
  add(stream, hw::OfmBase0{.value = 3000}), add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
  hw::add_stop(stream);
  return stream;
}

TEST(EthosuDecode, ARegisterIsAFieldOfTheOperationsThatItIsInForceFor) {
  const npu::Annotated all = decoded(two_operations());
  EXPECT_EQ(all.operations, (std::vector<std::string>{"op_dma_start", "op_elementwise", "op_elementwise"}));
  EXPECT_EQ(all.shapes, (std::vector<std::string>{"256 bytes", "2x3x4 -> 2x3x4", "2x3x4 -> 2x3x4"}));
  const auto has = [&](std::string_view name, size_t operation, bool is_new) {
    return std::ranges::count_if(all.fields, [&](const npu::AnnotatedField& one) {
      return one.name == name && one.operation == operation && one.place.has_value() == is_new;
    });
  };
  for (const char* name : {"ifm_depth_m1.value", "ifm_base0.value", "ofm_scale.scale"}) {
    EXPECT_EQ(has(name, 0, true) + has(name, 0, false), 0) << name;
    EXPECT_EQ(has(name, 1, true), 1) << name;
    EXPECT_EQ(has(name, 2, true), 0) << name;
    EXPECT_EQ(has(name, 2, false), 1) << name;
  }
  EXPECT_EQ(has("dma0_len.value", 0, true), 1);
  EXPECT_EQ(has("dma0_len.value", 1, false) + has("dma0_len.value", 2, false), 0);
  EXPECT_EQ(has("ofm_base0.value", 2, true), 1);
  EXPECT_EQ(has("ofm_base0.value", 2, false), 0);
}

TEST(EthosuDecode, AddressesArePlacesInTheBuffersOfTheRegions) {
  const npu::Annotated all = decoded(two_operations());
  const auto address = [&](std::string_view name, size_t operation) {
    const auto found = std::ranges::find_if(
        all.fields, [&](const npu::AnnotatedField& one) { return one.name == name && one.operation == operation; });
    return found == all.fields.end() ? npu::AnnotatedField() : *found;
  };
  constexpr uint64_t kFirst = uint64_t{1} << 36, kSecond = uint64_t{2} << 36;
  EXPECT_EQ(address("dma0_src.value", 0).address, kFirst + 16);
  EXPECT_EQ(address("dma0_dst.value", 0).address, kSecond + 300);
  EXPECT_EQ(address("ifm_base0.value", 1).address, kSecond + 200);
  EXPECT_EQ(address("ifm_base0.value", 2).address, kSecond + 200);
  EXPECT_EQ(address("ofm_base0.value", 1).address, kSecond + 2048);
  EXPECT_EQ(address("ofm_base0.value", 2).address, kSecond + 3000);
  EXPECT_TRUE(address("ofm_base0.value", 2).output);
  EXPECT_FALSE(address("ifm_base0.value", 1).unused);
  EXPECT_TRUE(address("ifm_base1.value", 1).unused) << "the input is one tile";
}

// Checks of programs have no buffers for regions, and need no words.
TEST(EthosuDecode, WithoutWordsThereAreTheSameAddresses) {
  const npu::Annotated full = decoded(two_operations()), brief = decoded(two_operations(), npu::Detail::addresses);
  std::vector<std::pair<uint64_t, size_t>> in_full, in_brief;
  for (const npu::AnnotatedField& one : full.fields)
    if (one.kind != npu::FieldKind::value) in_full.emplace_back(one.address, one.operation);
  for (const npu::AnnotatedField& one : brief.fields) in_brief.emplace_back(one.address, one.operation);
  EXPECT_EQ(in_brief, in_full);
  EXPECT_GT(in_full.size(), 10u);
}

// Each open question of the hardware specification, section 12, has rows that refer to it, or a reason why it needs
// none.
TEST(EthosuAssumptions, OpenQuestionsHaveRows) {
  constexpr npu::OpenQuestion kQuestions[] = {
#define ASSUMPTION(name, what, sections, probe)
#define QUESTION(number, row) {number, #row, true},
#define NO_ROW(number, why) {number, why, false},
#include "npus/ethosu/compiler/assumptions.def"
#undef ASSUMPTION
#undef QUESTION
#undef NO_ROW
  };
  npu::check_open_questions(kQuestions, assumptions(), 14, "12.");
}

}  // namespace
}  // namespace skillet::npus::ethosu
