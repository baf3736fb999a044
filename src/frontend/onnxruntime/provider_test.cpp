// Tests the provider's calls by the host: capability, compilation, and repeated calls.
#include "frontend/onnxruntime/provider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/log_sink.h"
#include "base/testing/own_folder.h"
#include "frontend/onnx/testing/qdq_net.h"
#include "frontend/onnxruntime/factory.h"
#include "frontend/onnxruntime/testing/fake_host.h"
#include "frontend/onnxruntime/testing/stored_part.h"

namespace skillet::onnxruntime {
namespace {

// A session on a machine without an NPU.
struct Session {
  OrtLogger logger;
  std::unique_ptr<Provider> provider;

  explicit Session(const std::map<std::string, std::string>& entries = {}, const char* device = "cpu") {
    const auto ort = Ort::of(fake_host());
    EXPECT_TRUE(ort.ok());
    provider = make_provider(std::make_shared<const Ort>(*ort), &logger, {{"device", device}}, entries).value();
  }
  // Message of the status; empty: success.
  static std::string text_of(OrtStatus* status) {
    const std::unique_ptr<OrtStatus> held(status);
    return held == nullptr ? "" : held->text;
  }
  std::string ask(const OrtGraph& graph, OrtSupportInfo& info) {
    return text_of(provider->host.get_capability(&provider->host, &graph, &info));
  }
  std::string compile(const OrtNode& fused) {
    const OrtNode* nodes[] = {&fused};
    OrtNodeComputeInfo* made[1] = {};
    OrtNode* contexts[1] = {};
    std::string wrong = text_of(provider->host.compile(&provider->host, nullptr, nodes, 1, made, contexts));
    provider->host.release_compute_infos(&provider->host, made, wrong.empty() ? 1 : 0);
    return wrong;
  }
};

// ONNX Runtime does not write compiled parts of such graphs.
TEST(Provider, TakesNothingOfAGraphInsideANodeWhereItSaves) {
  const char* device = runtime::open_target("sim:rk3588").ok() ? "sim:rk3588" : "sim:a311d";
  if (!runtime::open_target(device).ok()) GTEST_SKIP() << "no simulated chip";
  for (const bool is_inside : {false, true}) {
    onnx::QdqNet net(ir::DType::uint8);
    net.node("Relu", {net.value(ir::DType::float32, {1})}, {net.value(ir::DType::float32, {1})});
    OrtGraph graph(net.model);
    graph.values[0].is_outside = is_inside;
    Session session({{"ep.context_enable", "1"}, {"ep.context_file_path", "/nowhere/out.onnx"}}, device);
    OrtSupportInfo info;
    ASSERT_EQ(session.ask(graph, info), "");
    const auto told = [](const std::string& line) { return line.find("graphs inside nodes") != line.npos; };
    EXPECT_EQ(std::ranges::any_of(session.logger.lines, told), is_inside);
  }
}

// A host takes at most some number of factories; one is made if it takes any.
TEST(Provider, WritesNoFactoryWhereThereIsNoRoom) {
  const OrtLogger logger;
  for (const size_t most : {0U, 1U, 4U}) {
    OrtEpFactory* factories[4] = {};
    size_t count = 99;
    const std::unique_ptr<OrtStatus> wrong(create_factories(&fake_host(), &logger, factories, most, &count));
    EXPECT_EQ(wrong != nullptr, most == 0) << most;
    EXPECT_EQ(count, most == 0 ? 0U : 1U) << most;
    EXPECT_EQ(factories[0] != nullptr, most != 0) << most;
    EXPECT_EQ(factories[1], nullptr) << most;
    if (factories[0] != nullptr) release_factory(factories[0]);
  }
}

// Uses the device that the host chose, unless the session's options name one.
TEST(Provider, RunsOnTheChosenDeviceOrTheNamedOne) {
  OrtEpFactory* factory = nullptr;
  size_t count = 0;
  const OrtLogger logger;
  ASSERT_EQ(create_factories(&fake_host(), &logger, &factory, 1, &count), nullptr);
  const auto device = [&](const OrtKeyValues& chosen, const OrtSessionOptions& session) {
    const OrtKeyValues* const metadata[] = {&chosen};
    OrtEp* made = nullptr;
    const std::unique_ptr<OrtStatus> wrong(factory->create_ep(factory, nullptr, metadata, 1, &session, &logger, &made));
    EXPECT_EQ(wrong, nullptr) << wrong->text;
    const std::string out = reinterpret_cast<const Provider*>(made)->options.device;
    factory->release_ep(factory, made);
    return out;
  };
  const OrtSessionOptions none, named{{{"ep.skilletexecutionprovider.device"}, {"cpu"}}};
  EXPECT_EQ(device({{"device"}, {"sim:nothing"}}, none), "sim:nothing");
  EXPECT_EQ(device({{"device"}, {"sim:nothing"}}, named), "cpu");
  EXPECT_EQ(device({{"device"}, {"auto"}}, named), "cpu");
  release_factory(factory);
}

TEST(Provider, ClaimsStoredPartsThatNobodyHas) {
  Stored stored(3);
  const OrtGraph graph(stored.model);
  Session session;
  OrtSupportInfo info, again, rest;
  ASSERT_EQ(session.ask(graph, info), "");
  ASSERT_EQ(info.parts.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(info.parts[i], (std::vector<const OrtNode*>{&graph.nodes[i]}));
  stored.model.nodes[1].is_taken = true;
  ASSERT_EQ(session.ask(graph, again), "");
  EXPECT_EQ(again.parts.size(), 2U);
  for (Node& node : stored.model.nodes) node.is_taken = true;
  ASSERT_EQ(session.ask(graph, rest), "");
  EXPECT_TRUE(rest.parts.empty());
}

TEST(Provider, SaysOnceThatStoredPartsAreOfAnotherDevice) {
  const Stored stored(3);
  const OrtGraph graph(stored.model);
  std::vector<std::string> said;
  log::set_sink([&](log::Level, const char* text) { said.emplace_back(text); }, log::Level::warning);
  OrtSupportInfo info;
  EXPECT_EQ(Session().ask(graph, info), "");
  log::set_sink(nullptr, log::Level::warning);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("runs on the CPU: "), std::string::npos) << said[0];
}

// For a model loaded from memory the session's options give its path.
TEST(Provider, LooksForFilesBesideTheModelOrWhereItIsSaidToBe) {
  const std::filesystem::path folder = own_path("provider_files");
  std::filesystem::create_directories(folder);
  Stored stored;
  ASSERT_TRUE(write_file(folder / "part.bin", stored.bytes).ok());
  stored.mode(0);
  stored.set("ep_cache_context", "part.bin");
  const std::string path = folder / "model.onnx";
  const auto asked = [&](const std::string& of_graph, const std::string& of_session) {
    OrtSupportInfo info;
    const OrtGraph graph(stored.model, of_graph);
    return Session({{"ep.context_file_path", of_session}}).ask(graph, info);
  };
  EXPECT_EQ(asked(path, ""), "");
  EXPECT_EQ(asked(path, "/nowhere/model.onnx"), "");
  EXPECT_EQ(asked("", path), "");
  EXPECT_NE(asked("", "").find("load the model by its path"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(Provider, WritesNothingBesideAModelInMemory) {
  const std::map<std::string, std::string> beside = {{"ep.context_enable", "1"}, {"ep.context_embed_mode", "0"}};
  for (const bool is_compiler : {false, true}) {
    for (const bool has_path : {false, true}) {
      auto entries = beside;
      if (is_compiler) entries["session.disable_model_compile"] = "0";
      if (has_path) entries["ep.context_file_path"] = "/nowhere/out.onnx";
      const Session session(entries);
      const bool is_memory = is_compiler && !has_path;
      EXPECT_EQ(session.provider->saves_beside, !is_memory);
      const auto told = [](const std::string& line) { return line.find("names no output file") != line.npos; };
      EXPECT_EQ(std::ranges::any_of(session.logger.lines, told), is_memory);
    }
  }
}

// A model with compiled parts in files may be written elsewhere under its own name, or beside itself: its files stay.
TEST(Provider, OverwritesNoFileOfTheModelThatItReads) {
  const std::filesystem::path folder = own_path("provider_overwrites");
  std::filesystem::create_directories(folder);
  const std::filesystem::path own = folder / "model_skillet_0.bin", next = folder / "model_skillet_1.bin";
  Stored stored;
  ASSERT_TRUE(write_file(own, stored.bytes).ok());
  stored.mode(0);
  stored.set("ep_cache_context", own.filename());
  const std::string path = folder / "model.onnx";
  const OrtGraph graph(stored.model, path);
  Session session({{"ep.context_enable", "1"}, {"ep.context_embed_mode", "0"}, {"ep.context_file_path", path}});
  OrtSupportInfo info;
  ASSERT_EQ(session.ask(graph, info), "");
  const auto written_at = std::filesystem::last_write_time(own);
  ASSERT_EQ(session.compile(graph.nodes[0]), "");
  EXPECT_EQ(std::filesystem::last_write_time(own), written_at);
  EXPECT_TRUE(std::filesystem::exists(next));
  std::filesystem::remove_all(folder);
}

// A value name of another graph selects no part of this one.
TEST(Provider, CompilesWhatWasClaimedOnce) {
  const Stored stored;
  const OrtGraph graph(stored.model);
  Session session;
  OrtSupportInfo info;
  EXPECT_EQ(session.compile(graph.nodes[0]), "skillet: the host compiles nodes that were not claimed");
  ASSERT_EQ(session.ask(graph, info), "");
  EXPECT_EQ(session.compile(graph.nodes[0]), "");
  EXPECT_EQ(session.compile(graph.nodes[0]), "skillet: the host compiles nodes that were not claimed");
}

}  // namespace
}  // namespace skillet::onnxruntime
