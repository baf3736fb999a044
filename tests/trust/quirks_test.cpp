// Simulated chips that differ from their driver's assumptions (sim::quirks()). Every result of a session is right, each
// operation within its stated error, and only operations that stand on the quirk's assumption leave the NPU. The long
// test (SKILLET_WHOLE_NETWORKS) runs eight kinds of networks, some cells of quirks x networks (all with
// SKILLET_QUIRKS=all, those of networks whose names begin with heads with SKILLET_QUIRKS=heads), and random sets of
// three quirks.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/log.h"
#include "base/splitmix64.h"
#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"
#include "judge_session.h"
#include "random_graph.h"
#include "runtime/session.h"
#include "sim/sim.h"

namespace skillet {
namespace {

namespace fs = std::filesystem;

struct Network {
  std::string name;
  ir::Graph graph;
};

void add_models(const fs::path& folder, std::vector<Network>& to) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".tflite") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    if (auto graph = tflite::import_file(file); graph.ok()) to.push_back({file.filename(), std::move(graph).value()});
  }
}

#ifdef SKILLET_WHOLE_NETWORKS
constexpr bool kLong = true;
#else
constexpr bool kLong = false;
#endif

// Returns the networks of SKILLET_QUIRKS; empty: some cells.
[[maybe_unused]] std::string_view wanted_networks() {
  const char* const set = std::getenv("SKILLET_QUIRKS");
  return set == nullptr || (*set >= '0' && *set <= '9') ? "" : set;
}
[[maybe_unused]] bool wants_all() { return !wanted_networks().empty(); }

[[maybe_unused]] size_t number_of(const char* name, size_t otherwise) {
  const char* const set = std::getenv(name);
  return set == nullptr ? otherwise : std::strtoull(set, nullptr, 10);
}
constexpr size_t kEveryProbe = kLong ? 3 : 37;
[[maybe_unused]] constexpr size_t kCellStep = 101;  // prime: neighbours have other quirks and networks

// Sizes that no network of the folders has: three images, primes, one channel, one pixel, one column.
constexpr const char* kOdd = R"(graph "odd"
tensor 0 "x" uint8 3x7x13x5 scale=0.05 zero=128
tensor 1 "f" uint8 11x3x3x5 scale=0.002 zero=128 const=random:1
tensor 2 "b" int32 11 scale=0.0001 zero=0 const=random:1
tensor 3 "y" uint8 3x7x13x11 scale=0.05 zero=128
tensor 4 "p" uint8 1x1x1x1 scale=0.05 zero=128
tensor 5 "g" uint8 1x1x1x1 scale=0.02 zero=128 const=random:2
tensor 6 "c" int32 1 scale=0.001 zero=0 const=random:2
tensor 7 "q" uint8 1x1x1x1 scale=0.05 zero=128
tensor 8 "s" uint8 1x1x1x1 scale=0.1 zero=128
tensor 9 "i" int8 1x5x1x1 scale=0.05 zero=-3
tensor 10 "d" int8 1x3x3x1 scale=0.01 zero=0 const=random:3
tensor 11 "e" int32 1 scale=0.0005 zero=0 const=random:3
tensor 12 "o" int8 1x5x1x1 scale=0.05 zero=4
tensor 13 "j" uint8 1x17x31x1 scale=0.05 zero=128
tensor 14 "h" uint8 7x5x5x1 scale=0.002 zero=120 const=random:4
tensor 15 "k" int32 7 scale=0.0001 zero=0 const=random:4
tensor 16 "z" uint8 1x7x14x7 scale=0.05 zero=128
inputs 0 4 9 13
outputs 3 8 12 16
op 0 CONV_2D in=[0 1 2] out=[3] padding=same
op 1 CONV_2D in=[4 5 6] out=[7] padding=same
op 2 ADD in=[4 7] out=[8]
op 3 DEPTHWISE_CONV_2D in=[9 10 11] out=[12] padding=same
op 4 CONV_2D in=[13 14 15] out=[16] padding=valid stride_h=2 stride_w=2
)";

Network random_network(uint32_t seed) {
  Network out{fmt::format("random {}", seed), GraphMaker(seed).make()};
  for (size_t i = 0; i < out.graph.ops.size(); ++i) out.graph.ops[i].source_index = static_cast<int32_t>(i);
  return out;
}

const std::vector<Network>& networks() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<Network>();
    add_models(in_tree("tests/models"), *all);
    add_models(in_tree("tests/captures/models"), *all);
    for (const uint32_t seed : {11U, 12U, 13U}) all->push_back(random_network(seed));
    return all;
  }();
  return *kAll;
}

#ifdef SKILLET_WHOLE_NETWORKS
// Returns nothing if no such files exist.
const std::vector<Network>& whole_networks() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<Network>();
    add_models(in_tree("../shared/models"), *all);
    if (all->empty()) return all;
    // One network of each kind: the small one of those that differ in size alone.
    std::erase_if(*all, [](const Network& one) {
      return one.name.starts_with("mobilenet_v1_0.5") || one.name.starts_with("mobilenet_v1_1.0");
    });
    if (!wants_all()) std::erase_if(*all, [](const Network& one) { return one.name.starts_with("deeplab"); });
    std::vector<Network> more;
    add_models(in_tree("tests/models/keras"), more);
    add_models(in_tree("tests/models/functions"), more);
    for (Network& one : more)
      if (one.name.starts_with("heads") || one.name.starts_with("silu")) all->push_back(std::move(one));
    if (wants_all() && wanted_networks() != "all")
      std::erase_if(*all, [](const Network& one) { return !one.name.starts_with(wanted_networks()); });
    return all;
  }();
  return *kAll;
}
#endif

// Returns the source indices of the operations on the NPU.
std::set<int32_t> on_npu(const runtime::Session& session) {
  std::set<int32_t> out;
  for (size_t i = 0; i < session.graph().ops.size(); ++i) {
    const auto& part = session.report().parts[session.report().ops[i].part];
    if (session.report().ops[i].on_npu && part.fallback.empty()) out.insert(session.graph().ops[i].source_index);
  }
  return out;
}

// Returns the operations that stand on one of the assumptions, in the session that takes everything.
std::set<int32_t> standing_on(const runtime::Session& session, const std::set<std::string_view>& assumptions) {
  std::set<int32_t> out;
  for (size_t i = 0; i < session.graph().ops.size(); ++i)
    for (const npu::Assumption* one : session.report().ops[i].stands_on)
      if (assumptions.contains(one->name)) out.insert(session.graph().ops[i].source_index);
  return out;
}

class Quirks : public testing::TestWithParam<const char*> {
  log::ScopedLevel level_{log::Level::error};

 protected:
  Result<std::unique_ptr<runtime::Session>> open(const std::string& quirks, const ir::Graph& graph,
                                                 npu::Unproven unproven, bool keep,
                                                 std::shared_ptr<runtime::Trust>* trust = nullptr) {
    const std::string name = fmt::format("sim:{}{}{}", GetParam(), quirks.empty() ? "" : ",quirk=", quirks);
    SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(name));
    if (trust != nullptr) *trust = target.trust;
    return runtime::Session::create(
        graph, target, {.compile = {.unproven = unproven}, .allow_fallback = false, .keep_intermediates = keep});
  }

  // Refuted assumptions are those of the quirks, and at least one of them if an operation stands on it. One refutation
  // may hide another for the same operation. If no operation stands on them, a probe may refute them.
  void check_names(const runtime::Trust& trust, const std::set<std::string_view>& assumptions, bool is_needed,
                   const std::string& where) {
    std::set<std::string> named;
    for (const runtime::TrustEntry& one : trust.file().entries) {
      if (one.confirmed || one.kind != runtime::TrustKind::assumption) continue;
      EXPECT_TRUE(assumptions.contains(one.name)) << where << ": refuted " << one.name;
      named.insert(one.name);
    }
    EXPECT_TRUE(!is_needed || !named.empty()) << where << ": refuted: " << fmt::format("{}", fmt::join(named, ", "));
    named_ += named.empty() ? 0 : 1;
  }

  // Returns the session that takes everything; null if there is no such network for this chip, with or without quirks.
  const runtime::Session* all_of(const Network& network) {
    const auto [at, is_new] = all_.try_emplace(&network, nullptr);
    if (!is_new) return at->second.get();
    auto made = open("", network.graph, npu::Unproven::take, false);
    if (made.ok()) at->second = std::move(made).value();
    return at->second.get();
  }

  void check_default(const std::string& quirks, const Network& network, std::span<const std::span<const uint8_t>> given,
                     const std::vector<Bytes>& wanted, const std::string& where) {
    const auto session = open(quirks, network.graph, npu::Unproven::verify, false);
    const auto ran = session.ok() ? (*session)->run(given) : Result<std::vector<Bytes>>(session.error());
    EXPECT_TRUE(ran.ok() && *ran == wanted) << where << ": " << (ran.ok() ? "other results" : ran.error().message);
  }

  // The reason for running an operation on the CPU is the refutation, whatever the passes made of it before.
  static void check_reasons(const runtime::Session& session, const std::set<int32_t>& left, const std::string& where) {
    for (const compile::OpRow& row : runtime::rows(session)) {
      const int32_t source = session.graph().op(row.op).source_index;
      if (!left.contains(source) || row.on_npu) continue;
      EXPECT_TRUE(row.why.find("this device") != std::string::npos)
          << where << ": operation " << source << ", " << row.kind << ": " << row.why;
    }
  }

  static std::string why_on_cpu(const runtime::Session& session, int32_t source) {
    for (const compile::OpRow& row : runtime::rows(session))
      if (session.graph().op(row.op).source_index == source && !row.on_npu) return row.kind + ": " + row.why;
    for (const auto& part : session.report().parts)
      if (!part.fallback.empty()) return "after a failure: " + part.fallback;
    return "";  // the passes merged it into another
  }

  // With several quirks, all trials may fail: then, as with a failing device, no assumption is refuted.
  static bool is_given_up(const runtime::Session& session) {
    return std::ranges::any_of(runtime::rows(session), [](const compile::OpRow& row) {
      return row.why.find("unproven=refuse") != std::string::npos;
    });
  }

  // Returns how many operations left the NPU; adds the number of those that were on it to `there_`.
  size_t check(const std::string& quirks, const std::set<std::string_view>& assumptions, const Network& network) {
    const std::string where = fmt::format("{} {} {}", GetParam(), quirks, network.name);
    const runtime::Session* const all = all_of(network);
    if (all == nullptr) return 0;
    std::shared_ptr<runtime::Trust> trust;
    const auto session = open(quirks, network.graph, npu::Unproven::verify, true, &trust);
    EXPECT_TRUE(session.ok()) << where << ": " << session.error().message;
    if (!session.ok()) return 0;
    const std::vector<Bytes> inputs = random_inputs(network.graph, 5);
    const std::vector<std::span<const uint8_t>> given(inputs.begin(), inputs.end());
    const auto ran = (*session)->run(given);
    EXPECT_TRUE(ran.ok()) << where << ": " << ran.error().message;
    if (!ran.ok()) return 0;
    // Sessions of users keep no intermediates; the long test checks this in every third cell.
    if (!kLong || cells_ % 3 == 0) check_default(quirks, network, given, *ran, where);
    Tally tally;
    EXPECT_EQ(check_chip(**session, target_chip(), tally), "") << where;
    if (assumptions.size() > 1 && is_given_up(**session)) {
      ++given_up_;
      return 0;
    }
    const std::set<int32_t> before = on_npu(*all), now = on_npu(**session), may_leave = standing_on(*all, assumptions);
    check_names(*trust, assumptions, !may_leave.empty(), where);
    there_ += before.size();
    ++cells_;
    std::set<int32_t> left;
    for (const int32_t op : before) {
      if (now.contains(op)) continue;
      // The NPU may also compute it only fused with an operation that stands on it, such as an addition within a
      // convolution.
      const std::string why = why_on_cpu(**session, op);
      if (why.empty()) continue;
      left.insert(op);
      const auto is_named = [&](std::string_view one) { return why.find(fmt::format("({}: ", one)) != why.npos; };
      EXPECT_TRUE(may_leave.contains(op) || std::ranges::any_of(assumptions, is_named))
          << where << ": operation " << op << " left the NPU: " << why;
    }
    check_reasons(**session, left, where);
    return left.size();
  }

  size_t there_ = 0, named_ = 0, cells_ = 0, given_up_ = 0;
  std::map<const Network*, std::unique_ptr<runtime::Session>> all_;

  npu::Chip target_chip() const { return npu::find_chip(GetParam()).value(); }
};

// Runs each quirk with one of the small networks, in rotation; the long test runs all of them.
TEST_P(Quirks, ResultsAreRightWithEach) {
  const std::vector<sim::Quirk> quirks = sim::quirks(GetParam());
  size_t left = 0, runs = 0;
  for (size_t i = 0; i < quirks.size(); ++i) {
    for (size_t k = 0; k < networks().size(); ++k) {
      if (!kLong && k != i % networks().size()) continue;
      left += check(std::string(quirks[i].name), {quirks[i].assumption}, networks()[k]);
      ++runs;
    }
  }
  std::cout << GetParam() << ": " << quirks.size() << " quirks, " << runs << " runs of " << networks().size()
            << " networks, " << left << " operations left the NPU\n";
}

// A layer divided over several cores has fewer rows than columns, for any image.
TEST(QuirksOfBands, TheAssumptionIsNamedAndOneCoreDoesTheSame) {
  if (!npu::find_chip("rk3588").ok()) GTEST_SKIP() << "built without rockchip";
  const log::ScopedLevel quiet(log::Level::error);
  const ir::Graph graph = ir::parse(
                              "graph \"square\"\n"
                              "tensor 0 \"in\" int8 1x32x32x32 scale=0.5 zero=-8\n"
                              "tensor 1 \"w\" int8 32x3x3x32 scale=0.0078125 zero=0 const=random:1\n"
                              "tensor 2 \"out\" int8 1x32x32x32 scale=6 zero=3\n"
                              "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2] padding=same\n")
                              .value();
  const runtime::SessionOptions options{
      .compile = {.unproven = npu::Unproven::verify}, .allow_fallback = false, .cores = 3};
  const runtime::Target plain = runtime::open_target("sim:rk3588").value();
  const runtime::Target other = runtime::open_target("sim:rk3588,quirk=rows_for_columns").value();
  const auto wanted = runtime::Session::create(graph, plain, options).value();
  ASSERT_GT(wanted->programs(0).size(), 1U) << "no bands";
  ASSERT_TRUE(standing_on(*wanted, {"true_width"}).empty());
  const auto session = runtime::Session::create(graph, other, options);
  ASSERT_TRUE(session.ok()) << session.error().message;
  const std::vector<Bytes> inputs = random_inputs(graph, 5);
  const std::vector<std::span<const uint8_t>> given(inputs.begin(), inputs.end());
  EXPECT_EQ((*session)->run(given).value(), wanted->run(given).value());
  EXPECT_TRUE(other.trust->is_refuted(runtime::TrustKind::assumption, "true_width"));
  EXPECT_EQ(on_npu(**session), on_npu(*wanted));
}

// The refutations of another process are merged when this process adds its first: the affected parts are compiled
// again, and no operation is blamed.
TEST(QuirksAtOnce, NoOperationIsBlamedForWhatAnotherProcessFound) {
  if (!npu::find_chip("rk3576").ok()) GTEST_SKIP() << "built without rockchip";
  const log::ScopedLevel quiet(log::Level::error);
  const fs::path folder = own_path("trust");
  fs::remove_all(folder);
  ASSERT_EQ(::setenv("SKILLET_TRUST_DIR", folder.c_str(), 1), 0);
  const ir::Graph graph = tflite::import_file(in_tree("models/digits.tflite")).value();
  const auto open = [] { return runtime::open_target("sim:rk3576,quirk=second_bytes_ignored").value(); };
  const runtime::Target one = open(), other = open();  // both read an empty store
  const auto first = runtime::Session::create(graph, one, {}).value();
  const auto second = runtime::Session::create(graph, other, {}).value();
  EXPECT_TRUE(other.trust->refutes(runtime::TrustKind::assumption));
  EXPECT_FALSE(other.trust->refutes(runtime::TrustKind::operation));
  EXPECT_EQ(on_npu(*second), on_npu(*first));
  ASSERT_EQ(::unsetenv("SKILLET_TRUST_DIR"), 0);
  fs::remove_all(folder);
}

// Each assumption has a quirk; for Ethos-U85 other compilers exist.
TEST(QuirksOfEthosU, AreOfAllAssumptions) {
  const npu::Chip chip = npu::find_chip("imx93").value();
  std::set<std::string_view> names, with_quirk;
  for (const npu::Assumption& one : npu::driver_of(chip).value()->assumptions(chip)) names.insert(one.name);
  for (const sim::Quirk& one : sim::quirks("imx93")) with_quirk.insert(one.assumption);
  EXPECT_EQ(with_quirk, names);
  EXPECT_TRUE(sim::quirks("ethos-u85-128").empty());
}

TEST_P(Quirks, OddSizesAreNeverWrong) {
  const Network odd{"odd", ir::parse(kOdd).value()};
  for (const sim::Quirk& quirk : sim::quirks(GetParam())) check(std::string(quirk.name), {quirk.assumption}, odd);
}

// A MUL becomes a filter only beside another filter. If that one is refuted, this is the MUL's reason for the CPU.
TEST_P(Quirks, WhatLosesItsNeighbourSaysWhy) {
  if (std::string_view(GetParam()) != "s905d3") GTEST_SKIP() << "a chip all of whose filters stand on one assumption";
  const Network scaled{"scaled", ir::parse("graph \"scaled\"\n"
                                           "tensor 0 \"x\" int8 1x8x8x16 scale=0.05 zero=0\n"
                                           "tensor 1 \"f\" int8 16x3x3x16 scale=0.01 zero=0 const=random:1\n"
                                           "tensor 2 \"b\" int32 16 scale=0.0005 zero=0 const=random:1\n"
                                           "tensor 3 \"y\" int8 1x8x8x16 scale=0.1 zero=3\n"
                                           "tensor 4 \"c\" int8 1 scale=0.02 zero=0 const=[50]\n"
                                           "tensor 5 \"z\" int8 1x8x8x16 scale=0.1 zero=3\n"
                                           "inputs 0\noutputs 5\nop 0 CONV_2D in=[0 1 2] out=[3] padding=same\n"
                                           "op 1 MUL in=[3 4] out=[5]\n")
                                     .value()};
  EXPECT_EQ(check("nn_never_ends", {"like_its_generation"}, scaled), 2U);
}

// Runs the probe of each assumption as a network: a wrong result must not refute another assumption. All probes with
// each quirk with SKILLET_QUIRKS=all, else some, and the pairs where too much was refuted once.
constexpr std::pair<std::string_view, std::string_view> kNamedMore[] = {
    {"rows_for_columns", "average_in_parts"},  // ran without a switch that every program needs
    {"correction_plus_one", "leaky_as_sum"},   // the probe of the sum stands on an unverified assumption
    {"operands_of_four_channels", "leaky_as_sum"}};
TEST_P(Quirks, ProbesNameNoOther) {
  const std::vector<sim::Quirk> quirks = sim::quirks(GetParam());
  const runtime::Target target = runtime::open_target(fmt::format("sim:{}", GetParam())).value();
  std::vector<Network> probes;
  for (const npu::Assumption& one : target.driver->assumptions(target_chip()))
    if (auto graph = ir::parse(one.probe); graph.ok())
      probes.push_back({std::string(one.name), std::move(graph).value()});
  ASSERT_GT(probes.size(), 5U);
  for (size_t i = 0; i < quirks.size(); ++i)
    for (size_t k = 0; k < probes.size(); ++k)
      if (wants_all() || (i + k) % kEveryProbe == 0 ||
          std::ranges::count(kNamedMore, std::pair<std::string_view, std::string_view>(quirks[i].name, probes[k].name)))
        check(std::string(quirks[i].name), {quirks[i].assumption}, probes[k]);
  EXPECT_GT(cells_, 0U);
  std::cout << fmt::format("{}: {} cells, the assumption is named in {}\n", GetParam(), cells_, named_);
}

// Seeds of RandomNetworksAreRightWithSeveral that failed once. Three wrong probes on a chip with three quirks were
// taken for a failing chip; a constant beside a refuted operation was given as the reason for the CPU.
struct Draw {
  std::string_view chip, quirks;
  uint32_t seed;
};
constexpr Draw kDrawnOnce[] = {{"rk3576", "one_stride+products_of_32_bits+windows_read_dense", 2058},
                               {"s905d3", "tiles_by_columns+v8_coefficients", 2084}};

// A different network for each seed, with one to three quirks.
TEST_P(Quirks, RandomNetworksAreRightWithSeveral) {
  const std::vector<sim::Quirk> all = sim::quirks(GetParam());
  const auto check_draw = [&](const std::string& names, uint32_t seed) {
    std::set<std::string_view> assumptions;
    for (const sim::Quirk& one : all)
      if (fmt::format("+{}+", names).find(fmt::format("+{}+", one.name)) != std::string::npos)
        assumptions.insert(one.assumption);
    all_.clear();
    return check(names, assumptions, random_network(seed));
  };
  for (const Draw& one : kDrawnOnce)
    if (one.chip == GetParam()) check_draw(std::string(one.quirks), one.seed);
  EXPECT_EQ(given_up_, 0U);
  const size_t first = number_of("SKILLET_RANDOM_GRAPHS_FIRST", 1), count = number_of("SKILLET_RANDOM_GRAPHS", 5);
  size_t left = 0;
  for (size_t seed = first; seed < first + count; ++seed) {
    SplitMix64 random(seed);
    std::set<std::string_view> names;
    for (size_t i = 1 + random.next() % 3; i > 0; --i) names.insert(all[random.next() % all.size()].name);
    left += check_draw(fmt::format("{}", fmt::join(names, "+")), static_cast<uint32_t>(seed));
  }
  std::cout << fmt::format(
      "{}: {} networks, {} of {} operations left the NPU, an assumption is named in {}; {} given up\n", GetParam(),
      cells_, left, there_, named_, given_up_);
}

#ifndef SKILLET_WHOLE_NETWORKS
TEST_P(Quirks, WithoutOneAllStaysOnTheNpu) {
  for (const Network& network : networks()) EXPECT_EQ(check("", {}, network), 0U) << network.name;
}

#else
TEST_P(Quirks, WholeNetworksAreRight) {
  if (whole_networks().empty()) GTEST_SKIP() << "no ../shared/models";
  for (const Network& network : whole_networks()) EXPECT_EQ(check("", {}, network), 0U) << network.name;
  // A cell is a quirk and a network. Runs as many as SKILLET_QUIRKS sets, from SKILLET_RANDOM_GRAPHS_FIRST on, or all.
  const std::vector<sim::Quirk> quirks = sim::quirks(GetParam());
  const size_t width = whole_networks().size(), all = quirks.size() * width,
               first = number_of("SKILLET_RANDOM_GRAPHS_FIRST", 0);
  const size_t cells = wants_all() ? all : std::min(all, number_of("SKILLET_QUIRKS", (quirks.size() + 3) / 4));
  std::vector<std::vector<size_t>> of(width);  // quirks, by network
  for (size_t i = 0; i < cells; ++i) {
    const size_t at = wants_all() ? i : (first + i) * kCellStep % all;
    of[at % width].push_back(at / width);
  }
  for (size_t i = 0; i < width; ++i) {
    size_t left = 0;
    there_ = named_ = cells_ = 0;
    for (const size_t quirk : of[i])
      left += check(std::string(quirks[quirk].name), {quirks[quirk].assumption}, whole_networks()[i]);
    std::cout << fmt::format("{} {}: {} cells, {} of {} operations left the NPU, the assumption is named in {}\n",
                             GetParam(), whole_networks()[i].name, cells_, left, there_, named_)
              << std::flush;
    EXPECT_EQ(cells_, of[i].size()) << whole_networks()[i].name;
    all_.clear();
  }
}

TEST_P(Quirks, ResultsAreRightWithThree) {
  const std::vector<sim::Quirk> all = sim::quirks(GetParam());
  ASSERT_GE(all.size(), 3U);
  SplitMix64 random(1);
  const int draws = wants_all() ? 67 : 50;  // 402 on six chips
  size_t left = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::set<std::string_view> names, assumptions;
    while (names.size() < 3) {
      const sim::Quirk& one = all[random.next() % all.size()];
      names.insert(one.name);
      assumptions.insert(one.assumption);
    }
    left += check(fmt::format("{}", fmt::join(names, "+")), assumptions, networks()[random.next() % networks().size()]);
  }
  std::cout << fmt::format("{}: {} draws of three, {} of {} operations left the NPU, an assumption is named in {}\n",
                           GetParam(), cells_, left, there_, named_);
}
#endif

INSTANTIATE_TEST_SUITE_P(Chips, Quirks, testing::Values("a311d", "imx8mp", "rk3588", "rk3576", "s905d3", "imx93"),
                         [](const auto& chip) { return std::string(chip.param); });

}  // namespace
}  // namespace skillet
