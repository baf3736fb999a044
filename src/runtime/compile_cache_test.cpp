// A result of compile_for() comes back from a folder as it was, without a question to the driver, or is made again.
#include "runtime/compile_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "compile/report.h"
#include "compile/stored_result.h"
#include "graph/import/import.h"
#include "npu/forwarding_driver.h"
#include "runtime/compiled_model.h"
#include "runtime/program_cache.h"
#include "runtime/testing/repaired.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

constexpr ir::TensorId kK = 6;
constexpr uint64_t kGrownBytes = 1 << 29;

std::filesystem::path empty_folder() {
  std::filesystem::path folder = own_path("cache/new");
  std::filesystem::remove_all(folder);
  return folder;
}

std::vector<npu::Program> programs_of(compile::Compiled compiled) {
  std::vector<npu::Program> out;
  for (compile::Part& part : compiled.parts)
    for (const compile::PartProgram& one : compile::programs(part)) out.push_back(*one.program);
  return out;
}

// A folder, and compilations for the toy with it.
struct Cached {
  std::filesystem::path folder = empty_folder();
  ToyDriver toy;
  Target target{.name = "toy", .chip = {.name = "toy"}, .driver = &toy, .context = nullptr};

  compile::Compiled compile(const ir::Graph& graph, SessionOptions options = {}) {
    options.cache_dir = folder.string();
    auto compiled = compile_for(target, graph, options);
    EXPECT_TRUE(compiled.ok()) << compiled.error().message;
    return compiled.ok() ? std::move(compiled).value() : compile::Compiled{};
  }
  // The programs, and how often the driver has compiled so far.
  std::pair<std::vector<npu::Program>, int> programs(const ir::Graph& graph, const SessionOptions& options = {}) {
    auto made = programs_of(compile(graph, options));
    return {std::move(made), toy.compiled};
  }
};

TEST(CompileCache, CompilesOnce) {
  Cached cached;
  const ir::Graph graph = without_slice();
  const std::string path = cached.compile(graph).kept_in;
  const auto [programs, first] = cached.programs(graph);
  EXPECT_EQ(first, 1);
  ir::Graph other = graph;
  ir::set_constant(other.tensor(kK), Bytes(kElems, 131));
  const std::string other_path = cached.compile(other).kept_in;
  EXPECT_EQ(cached.toy.compiled, 2) << "other constants";
  EXPECT_EQ(cached.programs(graph, {.compile = {.tuning = npu::Tuning::tuned}}).second, 3) << "other options";

  const Bytes good = *read_file(path);
  int compiled = 3;
  for (size_t at = 0; at < good.size(); at += 1 + good.size() / 16) {
    Bytes bad = good;
    bad[at] ^= 0x10;
    ASSERT_TRUE(write_file(path, bad).ok());
    EXPECT_EQ(cached.programs(graph), std::pair(programs, ++compiled)) << "byte " << at;
  }
  ASSERT_TRUE(write_file(path, std::span(good).first(good.size() / 2)).ok());
  EXPECT_EQ(cached.programs(graph), std::pair(programs, ++compiled)) << "truncated";
  std::filesystem::resize_file(path, kGrownBytes);
  EXPECT_EQ(cached.programs(graph), std::pair(programs, ++compiled)) << "grown, without a byte on the disk";
  std::filesystem::copy_file(other_path, path, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(cached.programs(graph), std::pair(programs, ++compiled)) << "a file of another graph with this name";
  EXPECT_EQ(cached.programs(graph), std::pair(programs, compiled)) << "a damaged file is replaced";
}

// A valid program in a valid file that would not load: it is for another chip, or of another graph.
TEST(CompileCache, ReplacesWhatWouldNotLoad) {
  Cached cached;
  const ir::Graph graph = without_slice();
  const std::string path = cached.compile(graph).kept_in;
  const npu::Program expected = cached.programs(graph).first.at(0);
  const Bytes good = *read_file(path);
  const std::function<void(npu::Program&)> edits[] = {
      [](npu::Program& program) { program.chip = "tox"; },
      [](npu::Program& program) { program.chip.clear(); },
      [](npu::Program& program) { program.inputs[0].tensor = 256; },
      [](npu::Program& program) { program.inputs[0].tensor = program.inputs[1].tensor; },
      [](npu::Program& program) { program.outputs.pop_back(); },
      [](npu::Program& program) { program.inputs[0].shape.elem_bytes *= 2; },
  };
  int compiled = cached.toy.compiled;
  for (const auto& edit : edits) {
    npu::Program program = expected;
    edit(program);
    CompiledModel entry = read_compiled(good).value();
    entry.programs[0].file = npu::serialise(program, false).value();
    ASSERT_TRUE(write_file(path, save_compiled(entry).value()).ok());
    EXPECT_EQ(cached.programs(graph), std::pair(std::vector{expected}, ++compiled)) << "not what the file says";
    EXPECT_EQ(*read_file(path), good) << "and replaced";
  }
  for (const size_t count : {0, 2}) {
    CompiledModel entry = read_compiled(good).value();
    entry.programs.resize(count, entry.programs[0]);
    ASSERT_TRUE(write_file(path, save_compiled(entry).value()).ok());
    EXPECT_EQ(cached.programs(graph), std::pair(std::vector{expected}, ++compiled)) << count << " programs";
  }
}

// Obstacles in place of an entry, or of the folder: each time the graph is compiled, and later comes from the file
// again.
TEST(CompileCache, CompilesWhateverStandsInTheWay) {
  Cached cached;
  const ir::Graph graph = without_slice();
  const std::string path = cached.compile(graph).kept_in;
  const auto expected = cached.programs(graph).first;
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
        std::filesystem::remove_all(cached.folder);
        ASSERT_TRUE(write_file(cached.folder.string(), {}).ok());
      },
      [&] { std::filesystem::remove_all(cached.folder); },
  };
  for (const auto& obstacle : obstacles) {
    if (std::filesystem::is_directory(cached.folder)) std::filesystem::remove_all(path);
    obstacle();
    EXPECT_EQ(cached.programs(graph).first, expected);
  }
  const int compiled = cached.toy.compiled;
  EXPECT_EQ(cached.programs(graph), std::pair(expected, compiled));
}

// Constants are used in place in the file, and aligned for copies by words.
TEST(CompileCache, ConstantsAreAlignedInTheFile) {
  Cached cached;
  cached.compile(without_slice());
  for (const npu::Program& program : cached.programs(without_slice()).first)
    for (const npu::Buffer& buffer : program.buffers)
      if (!buffer.contents.empty()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.contents.data()) % 64, 0u) << buffer.name;
      }
  EXPECT_EQ(cached.toy.compiled, 1);
}

// All that decides about a compilation and is not in cache_key() itself.
TEST(CompileCache, EachOptionHasAFileOfItsOwn) {
  Cached cached;
  const SessionOptions options[] = {
      {},
      {.compile = {.unproven = npu::Unproven::take}},
      {.compile = {.per_channel = npu::PerChannel::approximate}},
      {.allow_fallback = false},
      {.keep_intermediates = true},
      {.partition = compile::PartitionBy::work},
      {.min_macs_per_byte = 7},
      {.longest_runs = true},
  };
  std::set<std::string> files;
  for (const SessionOptions& one : options) files.insert(cached.compile(without_slice(), one).kept_in);
  EXPECT_EQ(files.size(), std::size(options));
  SessionOptions plan{.cache_dir = cached.folder.string()};
  EXPECT_TRUE(files.insert(plan_for(cached.target, without_slice(), plan).value().kept_in).second) << "no programs";
  ir::Graph renamed = without_slice();
  renamed.tensor(kR).name = "R";
  EXPECT_TRUE(files.insert(cached.compile(renamed).kept_in).second) << "reasons name tensors";
}

// Bytes that no checksum protects: refused, or a result that can be used.
TEST(CompileCache, ForgedBytesAreRefusedOrSound) {
  Cached cached;
  const ir::Graph graph = chain();
  const compile::Target target{.driver = &cached.toy, .chip = cached.target.chip};
  const compile::StoredResult good = compile::store(cached.compile(graph), graph, target).value();
  std::mt19937 random(1);
  constexpr int kRounds = 4000;
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    Bytes forged = good.bytes;
    const auto value = static_cast<uint8_t>(random() % 3 == 0 ? random() : random() % 8);
    forged[random() % forged.size()] = value;
    if (round % 8 == 0) forged.resize(random() % forged.size());
    const auto read = compile::restore(forged, Bytes(good.constants), graph, target);
    if (!read.ok()) {
      ++refused;
      continue;
    }
    EXPECT_FALSE((compile::print(*read) + compile::print_offload(*read)).empty());
    for (const compile::Part& part : read->parts)
      EXPECT_TRUE(!part.partition.on_npu || ir::verify(part.partition.graph).ok());
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds) << "names may be anything";
}

TEST(CompileCache, EachOperationIsInOnePart) {
  Cached cached;
  const compile::Target target{.driver = &cached.toy, .chip = cached.target.chip};
  const compile::Compiled good = cached.compile(chain());
  ASSERT_EQ(good.parts.size(), 3u);
  const std::vector<ir::OpId> lists[] = {{2}, {3}, {0}, {-1}, {4}, {}, {2, 2}, {2, 3}};  // of the part on the CPU
  for (const std::vector<ir::OpId>& ops : lists) {
    compile::Compiled forged = good;
    forged.parts[1].partition.op_map = ops;
    const auto stored = compile::store(forged, chain(), target);  // which restores it, too
    EXPECT_EQ(stored.ok(), ops == lists[0]) << ops.size() << " operations";
  }
}

// Answers nothing that a hit might ask.
class Silent : public npu::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    ADD_FAILURE() << chip.name << " was asked about op " << op;
    return inner().supports(chip, graph, op);
  }
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph&, const npu::CompileOptions&) const override {
    return error(ErrorCode::internal, "compiled again");
  }
  Result<std::vector<npu::Choice>> choices(const npu::Chip&, const ir::Graph&,
                                           const npu::CompileOptions&) const override {
    return error(ErrorCode::internal, "searched again");
  }
};

// All text and all programs of a result.
std::string text_of(const compile::Compiled& compiled) {
  std::string out = compile::print(compiled) + compile::print_offload(compiled) + ir::print(compiled.graph);
  for (const compile::Part& part : compiled.parts) {
    out += ir::print(part.partition.graph) + part.note + part.key;
    for (const compile::Band& band : part.bands) out += ir::print(band.rows.graph);
  }
  for (const compile::OpPlace& place : compiled.ops)
    for (const npu::Assumption* one : place.stands_on) out += one->name;
  return out + compile::print(compiled.rewrites);
}

struct Case {
  const char *chip, *model;
  SessionOptions options;
};

TEST(CompileCache, HitsAreAsTheyWere) {
  const SessionOptions all{.partition = compile::PartitionBy::all}, predicted = with_defaults({});
  const SessionOptions bands{.cores = 3, .longest_runs = true};
  const SessionOptions tuned{.compile = {.tuning = npu::Tuning::tuned}};
  const SessionOptions approximate{.compile = {.per_channel = npu::PerChannel::approximate}};
  const Case cases[] = {
      {"a311d", "models/digits.tflite", all},
      {"a311d", "models/digits.tflite", tuned},
      {"imx8mp", "models/digits.tflite", predicted},
      {"rk3588", "models/digits.tflite", bands},
      {"rk3588", "models/digits.tflite", predicted},
      {"rk3576", "models/digits.tflite", all},
      {"a311d", "tests/models/conv_scales_i8.tflite", approximate},
      {"rk3576", "tests/models/conv_scales_i8.tflite", all},
      {"a311d", "tests/models/keras/gelu_i8.tflite", all},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("{} {}", one.chip, one.model));
    const ir::Graph graph = tflite::import_file(in_tree(one.model)).value();
    Target target = open_target(fmt::format("null:{}", one.chip)).value();
    SessionOptions options = one.options;
    options.cache_dir = empty_folder().string();
    const compile::Compiled made = compile_for(target, graph, options).value();
    const compile::Compiled planned = plan_for(target, graph, options).value();
    const Silent silent(*target.driver);
    target.driver = &silent;
    const auto hit = compile_for(target, graph, options);
    ASSERT_TRUE(hit.ok()) << hit.error().message;
    EXPECT_EQ(text_of(*hit), text_of(made));
    EXPECT_EQ(programs_of(*hit), programs_of(made));
    EXPECT_EQ(hit->kept_in, made.kept_in);
    EXPECT_NE(hit->kept_in, "");
    EXPECT_EQ(text_of(plan_for(target, graph, options).value()), text_of(planned));
  }
}

// A session compiles its parts once; parts that were split while searching for an op at fault are not kept.
TEST_F(ToySession, KeepsItsResultInAFolder) {
  const std::filesystem::path folder = empty_folder();
  for (const int expected_compilations : {2, 2}) {
    auto session = open({.cache_dir = folder.string()});
    EXPECT_EQ(run(*session, Inputs(3)), Inputs(3).expected());
    EXPECT_EQ(driver_.compiled, expected_compilations);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

// A valid program may fail nevertheless: it is not kept for the next session.
TEST_F(ToySession, KeepsNoProgramThatFailed) {
  const std::filesystem::path folder = empty_folder();
  const auto kept = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  for (const bool with_fallback : {true, false}) {
    auto session = open({.allow_fallback = with_fallback, .cache_dir = folder.string()});
    EXPECT_EQ(kept(), 1);
    state_.jobs_to_fault = 0;
    ASSERT_TRUE(session->set_input(0, Inputs(3).x).ok() && session->set_input(1, Inputs(3).y).ok());
    EXPECT_EQ(session->run().ok(), with_fallback);
    EXPECT_EQ(kept(), 0);
  }
}

}  // namespace
}  // namespace skillet::runtime
