// A stored compiled model is read back unchanged, or refused.
#include "runtime/compiled_model.h"

#include <gtest/gtest.h>

#include <random>

#include "base/log_sink.h"
#include "runtime/program_cache.h"
#include "runtime/session.h"
#include "runtime/session_keys.h"
#include "runtime/testing/repaired.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

constexpr size_t kRowBytes = 72, kTextBytesAt = 24, kBuildAt = 56;

struct Saved {
  ToyDriver toy;
  Target target{.name = "toy", .chip = {.name = "toy"}, .driver = &toy, .context = nullptr};
  CompiledModel model{.graph = without_slice(), .note = "by hand", .options = deciding_options({})};
  Bytes bytes;

  Saved() {
    SessionOptions options;
    options.programs = std::make_shared<ProgramStore>();
    auto compiled = compile_for(target, model.graph, options).value();
    model.programs = options.programs->programs_of(compiled).value();
    bytes = save_compiled(model).value();
  }
  // Number of its programs that are used.
  size_t taken(const CompiledModel& of, SessionOptions options = {}) {
    options.programs = std::make_shared<ProgramStore>(of.programs);
    EXPECT_TRUE(compile_for(target, of.graph, options).ok());
    return options.programs->taken();
  }
};

TEST(CompiledModel, ComesBackAndIsNotCompiledAgain) {
  Saved saved;
  const auto model = read_compiled(saved.bytes);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->chips(), "toy");
  EXPECT_EQ(model->note, "by hand");
  EXPECT_EQ(model->options, deciding_options({}));
  EXPECT_TRUE(model->is_of_this_build);
  EXPECT_EQ(ir::print(model->graph), ir::print(saved.model.graph)) << "constants have their hashes there";
  ASSERT_EQ(model->programs.size(), 1u);
  const int compiled = saved.toy.compiled;
  EXPECT_EQ(saved.taken(*model), 1u);
  EXPECT_EQ(saved.toy.compiled, compiled);
  EXPECT_EQ(saved.taken(*model, {.keep_intermediates = true}), 0u) << "other options: another program";
  EXPECT_EQ(Saved().bytes, saved.bytes) << "the same bytes each time";
}

// A host queries a part, and compiles it again with other names: programs that would never be looked up are not stored.
TEST(CompiledModel, HasNoProgramsOfTheSameGraphByOtherNames) {
  Saved saved;
  SessionOptions options;
  options.programs = std::make_shared<ProgramStore>();
  ir::Graph renamed = saved.model.graph;
  for (ir::Tensor& one : renamed.tensors) one.name += " of the host";
  ASSERT_TRUE(compile_for(saved.target, renamed, options).ok());
  auto compiled = compile_for(saved.target, saved.model.graph, options).value();
  CompiledModel model{.graph = saved.model.graph, .programs = options.programs->programs_of(compiled).value()};
  EXPECT_EQ(model.programs.size(), 1U);
  EXPECT_EQ(saved.taken(model), 1U);
}

// One file for two chips: each finds its own programs.
TEST(CompiledModel, HasProgramsOfSeveralChips) {
  Saved saved;
  CompiledModel both = saved.model;
  saved.target.chip.name = "toy2";
  EXPECT_EQ(saved.taken(both), 0u) << "of another chip";
  StoredProgram other = both.programs[0];
  other.chip = "a<b";
  other.key[0] ^= 1;
  both.programs.push_back(other);
  const auto read = read_compiled(save_compiled(both).value());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->programs, both.programs);
  EXPECT_EQ(read->chips(), "a<b, toy");
  for (const StoredProgram& one : read->programs)
    EXPECT_EQ((one.file.data() - static_cast<const uint8_t*>(read->programs[0].file.data())) % 64, 0);
}

TEST(CompiledModel, DamagedBytesAreRefused) {
  const Saved saved;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes = saved.bytes;
    if (round % 3 == 0)
      bytes.resize(random() % bytes.size());
    else if (round % 3 == 1)
      bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8);
    else
      bytes[random() % 88] ^= static_cast<uint8_t>(1 << random() % 8);
    const auto model = read_compiled(bytes);
    ASSERT_FALSE(model.ok()) << round;
    EXPECT_NE(model.error().message, "");
  }
}

TEST(CompiledModel, ForgedBytesAreRefusedOrGraphs) {
  const Saved saved;
  ASSERT_EQ(repaired(saved.bytes), saved.bytes);
  std::mt19937 random(2);
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    Bytes bytes = saved.bytes;
    for (int i = 0; i < 2; ++i) bytes[8 + random() % 800] = static_cast<uint8_t>(random());  // lengths, text, weights
    if (round % 4 == 0) bytes.resize(kHeaderBytes + random() % (bytes.size() - kHeaderBytes));
    const auto model = read_compiled(repaired(bytes));
    refused += model.ok() ? 0 : 1;
    EXPECT_TRUE(!model.ok() || ir::verify(model->graph).ok());
  }
  EXPECT_GT(refused, 250);
}

TEST(CompiledModel, SaysWhatDiffersFromHere) {
  Saved saved;
  std::vector<std::string> said;
  log::set_sink([&](log::Level, const char* text) { said.emplace_back(text); }, log::Level::warning);
  Bytes other_build = saved.bytes;
  other_build[kBuildAt] ^= 1;
  const auto here = read_compiled(saved.bytes), there = read_compiled(repaired(other_build));
  ASSERT_TRUE(here.ok() && there.ok());
  EXPECT_TRUE(here->is_of_this_build);
  EXPECT_FALSE(there->is_of_this_build);
  EXPECT_NE(there->build, here->build);
  say_what_differs(*here, saved.target);
  EXPECT_TRUE(said.empty());
  say_what_differs(*there, saved.target);
  saved.target.chip.name = "toy2";
  say_what_differs(*there, saved.target);
  say_what_differs(*here, cpu_target("no device 'x'"));
  log::set_sink(nullptr, log::Level::warning);
  EXPECT_EQ(said, (std::vector<std::string>{"a model compiled by another build of Skillet is compiled again",
                                            "a model compiled for toy is compiled again for toy2",
                                            "a model compiled for toy runs on the CPU: no device 'x'"}));
}

// For a recompiled model, the log names the option that differs; for one used as stored, it says nothing.
TEST(CompiledModel, SaysWhichOptionDiffers) {
  Saved saved;
  const auto read = read_compiled(saved.bytes);
  ASSERT_TRUE(read.ok());
  const auto unused = [&](const CompiledModel& model, SessionOptions options) {
    options.programs = std::make_shared<ProgramStore>(model.programs);
    EXPECT_TRUE(compile_for(saved.target, model.graph, options).ok());
    return what_is_unused(model, *options.programs, saved.target, options);
  };
  EXPECT_EQ(unused(*read, {}), "");
  EXPECT_EQ(unused(*read, {.cores = 1}), "") << "another option, the same program";
  SessionOptions tuned{.cores = 2};
  tuned.compile.tuning = npu::Tuning::tuned;
  EXPECT_EQ(unused(*read, tuned),
            "1 of 1 program is not used but compiled again: it was compiled with cores=auto, not 2; tuning=proven, not "
            "tuned");
  SessionOptions switches;
  switches.compile.switches = {"a", "b"};
  EXPECT_EQ(unused(*read, switches),
            "1 of 1 program is not used but compiled again: it was compiled with switches=none, not a+b");
  CompiledModel other = *read;
  other.programs[0].key[0] ^= 1;
  EXPECT_EQ(unused(other, {}),
            "1 of 1 program is not used but compiled again: this device has other trust entries (docs/trust.md) or "
            "another number of cores");
  saved.target.chip.name = "toy2";
  EXPECT_EQ(unused(*read, tuned), "") << "say_what_differs() has said it";
}

// Two equal parts of a graph share one program.
TEST(CompiledModel, HasEachProgramOnce) {
  Saved saved;
  SessionOptions options;
  options.programs = std::make_shared<ProgramStore>();
  auto twice = compile_for(saved.target, saved.model.graph, options).value();
  auto again = compile_for(saved.target, saved.model.graph, options).value();
  std::ranges::move(again.parts, std::back_inserter(twice.parts));
  EXPECT_EQ(options.programs->programs_of(twice).value().size(), 1U);
}

TEST(CompiledModel, LengthsAndPlacesAreChecked) {
  const Saved saved;
  Bytes longer = saved.bytes, shorter = saved.bytes;
  longer.push_back(0), shorter.pop_back();
  EXPECT_NE(read_compiled(longer).error().message.find("others follow it"), std::string::npos);
  EXPECT_NE(read_compiled(shorter).error().message.find("it was cut off"), std::string::npos);
  // The first constant's tensor.
  const size_t at = kHeaderBytes + kRowBytes * saved.model.programs.size() +
                    static_cast<size_t>(load_le<uint64_t>(&saved.bytes[kTextBytesAt]));
  const uint64_t tensors = saved.model.graph.tensors.size();
  for (const uint64_t tensor : {tensors, tensors + 1, UINT64_MAX}) {
    Bytes bytes = saved.bytes;
    store_le<uint64_t>(&bytes[at], tensor);
    const auto model = read_compiled(repaired(bytes));
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().message, fmt::format("it has a constant of tensor {} of {}", tensor, tensors));
  }
}

// Contents with a right checksum may be arbitrary; if a program is invalid, it is compiled again.
TEST(CompiledModel, OddContentsAreRefused) {
  Saved saved;
  CompiledModel odd = saved.model;
  for (StoredProgram& one : odd.programs) one.file = Bytes(100, 7);
  EXPECT_EQ(saved.taken(read_compiled(save_compiled(odd).value()).value()), 0u);
  odd.graph.tensor(kR).shape.dims.push_back(5);
  EXPECT_FALSE(read_compiled(save_compiled(odd).value()).ok());
  // A short text that describes large tensors.
  odd.graph = saved.model.graph;
  odd.graph.name = std::string(60, 'n');
  Bytes bytes = save_compiled(odd).value();
  const auto at = std::search(bytes.begin(), bytes.end(), odd.graph.name.begin(), odd.graph.name.end());
  ASSERT_NE(at, bytes.end());
  std::ranges::copy(std::string_view("\"\ntensor 0 \"\" uint8 2000000000 const=zeros"), at);
  const auto huge = read_compiled(repaired(bytes));
  ASSERT_FALSE(huge.ok());
  EXPECT_NE(huge.error().message.find("constants"), std::string::npos) << huge.error().message;
  odd.graph = saved.model.graph;
  odd.graph.tensor(0).name = "x const=zeros";
  EXPECT_TRUE(read_compiled(save_compiled(odd).value()).ok());
}

// A key has 32 bytes, and the name of a chip at most so many.
TEST(CompiledModel, SavesKeysAndNamesThatFit) {
  const Saved saved;
  for (const size_t bytes : {0, 1, 31, 32, 33, 255, 256}) {
    CompiledModel one = saved.model;
    one.programs[0].key = std::string(bytes, 'k');
    EXPECT_EQ(save_compiled(one).ok(), bytes == 32) << bytes;
    one = saved.model;
    one.programs[0].chip = std::string(bytes, 'c');
    const auto written = save_compiled(one);
    ASSERT_EQ(written.ok(), bytes <= 32) << bytes;
    if (!written.ok()) continue;
    const auto read = read_compiled(*written);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->programs[0].chip, one.programs[0].chip);
  }
}

}  // namespace
}  // namespace skillet::runtime
