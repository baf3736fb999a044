#include "runtime/program_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <set>

#include "base/testing/own_folder.h"
#include "compile/build_id.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

std::filesystem::path empty_folder() {
  std::filesystem::path folder = own_path("cache/new");
  std::filesystem::remove_all(folder);
  return folder;
}

constexpr ir::TensorId kK = 6;
constexpr uint64_t kGrownBytes = 1 << 29;

TEST(ProgramCache, CompilesOnce) {
  const std::filesystem::path folder = empty_folder();
  const ir::Graph graph = without_slice();
  const npu::Chip chip{.name = "toy"};
  const ToyDriver toy;
  const CachingDriver caching(toy, folder.string());
  const auto compile = [&](const ir::Graph& what, const npu::CompileOptions& options = {}) {
    auto program = caching.compile(chip, what, options);
    EXPECT_TRUE(program.ok()) << program.error().message;
    return std::pair(program.ok() ? std::move(program).value() : npu::Program{}, toy.compiled);
  };
  const auto [program, first] = compile(graph);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(compile(graph), std::pair(program, 1)) << "from the file";
  ir::Graph other = graph;
  ir::set_constant(other.tensor(kK), Bytes(kElems, 131));
  EXPECT_EQ(compile(other).second, 2) << "other constants";
  EXPECT_EQ(compile(graph, {.tuning = npu::Tuning::tuned}).second, 3) << "other options";

  const std::string path = fmt::format("{}/{}.skp", folder.string(), cache_key(chip, graph, {}));
  const Bytes good = *read_file(path);
  int compiled = 3;
  for (size_t at = 0; at < good.size(); at += 1 + good.size() / 16) {
    Bytes bad = good;
    bad[at] ^= 0x10;
    ASSERT_TRUE(write_file(path, bad).ok());
    EXPECT_EQ(compile(graph), std::pair(program, ++compiled)) << "byte " << at;
  }
  ASSERT_TRUE(write_file(path, std::span(good).first(good.size() / 2)).ok());
  EXPECT_EQ(compile(graph), std::pair(program, ++compiled)) << "truncated";
  std::filesystem::resize_file(path, kGrownBytes);
  EXPECT_EQ(compile(graph), std::pair(program, ++compiled)) << "grown, without a byte on the disk";
  // A file of another graph with this name.
  std::filesystem::copy_file(fmt::format("{}/{}.skp", folder.string(), cache_key(chip, other, {})), path,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(compile(graph), std::pair(program, ++compiled));
  EXPECT_EQ(compile(graph), std::pair(program, compiled)) << "a damaged file is replaced";
}

// A valid program in a valid file that would not load: it is for another chip, or of another graph.
TEST(ProgramCache, ReplacesWhatWouldNotLoad) {
  const std::filesystem::path folder = empty_folder();
  const ir::Graph graph = without_slice();
  const npu::Chip chip{.name = "toy"};
  const ToyDriver toy;
  const CachingDriver caching(toy, folder.string());
  const npu::Program expected = caching.compile(chip, graph, {}).value();
  const std::string path = fmt::format("{}/{}.skp", folder.string(), cache_key(chip, graph, {}));
  const Bytes good = *read_file(path);
  const std::function<void(npu::Program&)> edits[] = {
      [](npu::Program& program) { program.chip = "tox"; },
      [](npu::Program& program) { program.chip.clear(); },
      [](npu::Program& program) { program.inputs[0].tensor = 256; },
      [](npu::Program& program) { program.inputs[0].tensor = program.inputs[1].tensor; },
      [](npu::Program& program) { program.outputs.pop_back(); },
      [](npu::Program& program) { program.inputs[0].shape.elem_bytes *= 2; },
  };
  int compiled = toy.compiled;
  for (const auto& edit : edits) {
    npu::Program program = expected;
    edit(program);
    CompiledModel entry = read_compiled(good).value();
    entry.programs[0].file = npu::serialise(program, false).value();
    const Bytes file = save_compiled(entry).value();
    ASSERT_TRUE(write_file(path, file).ok());
    EXPECT_EQ(caching.compile(chip, graph, {}).value(), expected);
    EXPECT_EQ(toy.compiled, ++compiled) << "not what the file says";
    EXPECT_EQ(*read_file(path), good) << "and replaced";
  }
}

// Obstacles in place of an entry, or of the folder: each time a program is compiled, and later comes from the file
// again.
TEST(ProgramCache, CompilesWhateverStandsInTheWay) {
  const std::filesystem::path folder = empty_folder();
  const ir::Graph graph = without_slice();
  const npu::Chip chip{.name = "toy"};
  const ToyDriver toy;
  const CachingDriver caching(toy, folder.string());
  const npu::Program expected = toy.compile(chip, graph, {}).value();
  std::filesystem::create_directories(folder);
  const std::string path = fmt::format("{}/{}.skp", folder.string(), cache_key(chip, graph, {}));
  const std::function<void()> obstacles[] = {
      [&] { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); },
      [&] { std::filesystem::create_symlink("/dev/zero", path); },
      [&] {
        ASSERT_TRUE(write_file(path, {}).ok());
        ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
        std::filesystem::resize_file(path, 3ULL << 30);
      },
      [&] { std::filesystem::create_directory(path); },
      [&] {
        std::filesystem::remove_all(folder);
        ASSERT_TRUE(write_file(folder.string(), {}).ok());
      },
      [&] { std::filesystem::remove_all(folder); },
  };
  for (const auto& obstacle : obstacles) {
    if (std::filesystem::is_directory(folder)) std::filesystem::remove_all(path);
    obstacle();
    EXPECT_EQ(caching.compile(chip, graph, {}).value(), expected);
  }
  const int compiled = toy.compiled;
  EXPECT_EQ(caching.compile(chip, graph, {}).value(), expected);
  EXPECT_EQ(toy.compiled, compiled);
}

// Constants are used in place in the file, and aligned for copies by words.
TEST(ProgramCache, ConstantsAreAlignedInTheFile) {
  const ToyDriver toy;
  const CachingDriver caching(toy, empty_folder().string());
  for (int i = 0; i < 2; ++i) {
    const npu::Program program = caching.compile({.name = "toy"}, without_slice(), {}).value();
    for (const npu::Buffer& buffer : program.buffers) {
      if (i == 1 && !buffer.contents.empty()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.contents.data()) % 64, 0u) << buffer.name;
      }
    }
  }
  EXPECT_EQ(toy.compiled, 1);
}

TEST(ProgramCache, EachOptionHasAKeyOfItsOwn) {
  const ir::Graph graph = without_slice();
  ir::Graph other = graph;
  other.tensor(kR).quant.zero_points = {101};
  std::set<std::string> keys;
  size_t tried = 0;
  const auto add = [&](const npu::Chip& chip, const ir::Graph& what, const npu::CompileOptions& options,
                       std::string_view extra = {}) {
    keys.insert(cache_key(chip, what, options, extra));
    EXPECT_EQ(keys.size(), ++tried);
  };
  const npu::Chip toy{.name = "toy", .family = "f"};
  add(toy, graph, {});
  add(toy, other, {});
  add({.name = "toy2", .family = "f"}, graph, {});
  add({.name = "toy", .family = "g"}, graph, {});
  add(toy, graph, {}, "extra");
  add(toy, graph, {.tuning = npu::Tuning::tuned});
  add(toy, graph, {.switches = {"a"}});
  add(toy, graph, {.switches = {"a", "b"}});
  add(toy, graph, {.switches = {"ab"}});
  add(toy, graph, {.switches = {"b"}});
  add(toy, graph, {.switches = {"ab", ""}});
  add(toy, graph, {.choices = {{0, "a", 1}}});
  add(toy, graph, {.choices = {{1, "a", 1}}});
  add(toy, graph, {.choices = {{0, "b", 1}}});
  add(toy, graph, {.choices = {{0, "a", 2}}});
  add(toy, graph, {.choices = {{0, "a", 1}, {1, "a", 1}}});
  add(toy, graph, {.keep_intermediates = true});
  add(toy, graph, {.unproven = npu::Unproven::refuse});
  add(toy, graph, {.without = {"a"}});
  add(toy, graph, {.without = {"a", "b"}});
  EXPECT_EQ(compile::build_id().size(), 32u);
  EXPECT_EQ(compile::build_id().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

// Results of `skillet tune` are found by hosts that number and name tensors differently, but for no other network.
TEST(GraphKey, KnowsWhatIsComputedAndNoNames) {
  const std::string plain = R"(graph ""
tensor 0 "in" uint8 1x4x4x16 scale=0.5 zero=128
tensor 1 "k" uint8 1x1x1x16 scale=0.25 zero=3 const=zeros
tensor 2 "sum" uint8 1x4x4x16 scale=1 zero=128
tensor 3 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0
outputs 3
op 0 ADD in=[0 1] out=[2]
op 1 RELU in=[2] out=[3]
)";
  const std::string renumbered = R"(graph "other"
tensor 0 "unused" uint8 1x9 scale=1 zero=0
tensor 1 "Identity" uint8 1x4x4x16 scale=1 zero=128
tensor 2 "x" uint8 1x4x4x16 scale=0.5 zero=128
tensor 3 "" uint8 1x4x4x16 scale=1 zero=128
tensor 4 "y" uint8 1x1x1x16 scale=0.25 zero=3 const=zeros
inputs 2
outputs 1
op 0 ADD in=[2 4] out=[3] source=7
op 1 RELU in=[3] out=[1] source=9
)";
  const auto key = [&](const std::string& text) {
    const auto graph = ir::parse(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message << text;
    return graph.ok() ? graph_key(*graph) : "";
  };
  EXPECT_EQ(key(plain), key(renumbered));
  std::set<std::string> keys = {key(plain)};
  const std::pair<const char*, const char*> edits[] = {{"in=[0 1]", "in=[1 0]"},
                                                       {"in=[0 1]", "in=[0 0]"},
                                                       {"RELU in", "RELU6 in"},
                                                       {"ADD in=[0 1]", "SUB in=[0 1]"},
                                                       {"scale=0.25", "scale=0.75"},
                                                       {"zero=3", "zero=4"},
                                                       {"zeros", "hex:01000000000000000000000000000000"},
                                                       {"outputs 3", "outputs 2 3"}};
  for (const auto& [from, to] : edits) {
    std::string text = plain;
    text.replace(text.find(from), std::string_view(from).size(), to);
    EXPECT_TRUE(keys.insert(key(text)).second) << from << " -> " << to;
  }
  std::string swapped = plain;  // the last edit, in the other order
  swapped.replace(swapped.find("outputs 3"), 9, "outputs 3 2");
  EXPECT_TRUE(keys.contains(key(swapped)));
}

// A session compiles its parts once; parts that were split while searching for an op at fault are not kept.
TEST_F(ToySession, KeepsProgramsInAFolder) {
  const std::filesystem::path folder = empty_folder();
  for (const int expected_compilations : {2, 2}) {
    auto session = open({.cache_dir = folder.string()});
    EXPECT_EQ(run(*session, Inputs(3)), Inputs(3).expected());
    EXPECT_EQ(driver_.compiled, expected_compilations);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
}

// A valid program may fail nevertheless: it is not kept for the next session.
TEST_F(ToySession, KeepsNoProgramThatFailed) {
  const std::filesystem::path folder = empty_folder();
  const auto kept = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  for (const bool with_fallback : {true, false}) {
    auto session = open({.allow_fallback = with_fallback, .cache_dir = folder.string()});
    EXPECT_EQ(kept(), 2);
    state_.jobs_to_fault = 0;
    ASSERT_TRUE(session->set_input(0, Inputs(3).x).ok() && session->set_input(1, Inputs(3).y).ok());
    EXPECT_EQ(session->run().ok(), with_fallback);
    EXPECT_EQ(kept(), 1) << "of the part that failed";
  }
}

}  // namespace
}  // namespace skillet::runtime
