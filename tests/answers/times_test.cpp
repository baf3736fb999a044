// Predicted times: of lists of layers with one thing changed, on each timed chip, and of programs for graphs in which a
// number is varied. See graphs_test.cpp.
#include <memory>

#include "answers/changes.h"
#include "answers/lines.h"
#include "answers/number_texts.h"
#include "base/log.h"
#include "compile/compile.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"
#include "runtime/cost_model.h"
#include "sim/timing.h"
#include "tools/time/layer_file.h"
#include "tools/time/layer_graph.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr std::string_view kLayerOps[] = {"conv",    "dwconv",  "fc",      "add",    "mul",       "concat",
                                          "maxpool", "avgpool", "reshape", "resize", "transpose", "convtranspose",
                                          "softmax", "split",   "sigmoid", "pad",    "input",     "output"};
constexpr std::string_view kActs[] = {"none", "relu", "relu6", "leaky", "swish", "hswish", "sigmoid", "tanh"};
constexpr Words kLayerWords[] = {kLayerOps, kActs};
constexpr const char* kNetwork =
    "id,name,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,sw,dh,dw,act,weight_elems\n"
    "0,\"i\",input,,64,64,3,64,64,3,0,0,1,1,1,1,none,0\n"
    "1,\"c\",conv,0,64,64,3,32,32,32,3,3,2,2,1,1,relu6,864\n"
    "2,\"d\",dwconv,1,32,32,32,32,32,32,3,3,1,1,1,1,relu,288\n"
    "3,\"e\",conv,2,32,32,32,32,32,64,1,1,1,1,1,1,none,2048\n"
    "4,\"f\",conv,3,32,32,64,32,32,64,3,3,1,1,2,2,swish,36864\n"
    "5,\"s\",add,3 4,32,32,64,32,32,64,0,0,1,1,1,1,relu,0\n"
    "6,\"m\",maxpool,5,32,32,64,16,16,64,2,2,2,2,1,1,none,0\n"
    "7,\"j\",concat,6 6,16,16,64,16,16,128,0,0,1,1,1,1,none,0\n"
    "8,\"u\",convtranspose,7,16,16,128,32,32,16,2,2,2,2,1,1,none,8192\n"
    "9,\"p\",mul,8 8,32,32,16,32,32,16,0,0,1,1,1,1,none,0\n"
    "10,\"a\",avgpool,9,32,32,16,1,1,16,32,32,1,1,1,1,none,0\n"
    "11,\"l\",fc,10,1,1,16,1,1,1000,1,1,1,1,1,1,none,16000\n";
constexpr const char* kTable =
    "id,op,in_c,in_h,in_w,out_c,out_h,out_w,kh,kw,stride,act,fused_add,dtype\n"
    "0,conv,32,56,56,64,56,56,3,3,1,relu,0,\"int8\"\n"
    "1,conv,64,56,56,64,28,28,3,3,2,none,1,\"int8\"\n"
    "2,dwconv,64,28,28,64,28,28,3,3,1,relu6,0,\"fp16\"\n"
    "3,fc,1024,1,1,1000,1,1,1,1,1,none,0,\"int8\"\n";

std::string text_of(const Result<std::vector<sim::Cost>>& costs) {
  if (!costs.ok()) return costs.error().message;
  std::string out;
  for (const sim::Cost& one : *costs) {
    out += fmt::format("{} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}", one.what, one.cycles, one.read_bytes, one.written_bytes,
                       one.on_chip_bytes, one.us);
    for (const sim::UnitTime& unit : one.units) out += fmt::format(" {} {:.6g}", unit.unit, unit.us);
  }
  return out;
}

std::string text_of(const Result<std::vector<compile::OperationCost>>& costs) {
  if (!costs.ok()) return costs.error().message;
  std::string out;
  for (const compile::OperationCost& one : *costs) out += fmt::format(" {:.6g} {:.6g}", one.device_us, one.wall_us());
  return out;
}

TEST(Answers, OfManyLayersWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, std::unique_ptr<sim::Timer>> timers;
  for (const sim::Jobs jobs : {sim::Jobs::open, sim::Jobs::vendor}) {
    for (const std::string_view chip : sim::timed_chips(jobs)) {
      auto timer = sim::create_timer(chip, jobs);
      ASSERT_TRUE(timer.ok()) << timer.error().message;
      timers[fmt::format("{} {}", chip, sim::kJobsNames[static_cast<size_t>(jobs)])] = std::move(*timer);
    }
  }
  std::map<std::string, Hash> hashes;
  for (const std::string text : {kNetwork, kTable}) {
    const auto ask = [&](const std::string& one) {
      const auto file = tools::parse_layers(one, "x");
      hashes["read"].add(file.ok() ? fmt::format("{}", file->layers.size()) : file.error().message);
      if (!file.ok()) return;
      const auto graph = tools::graph_of(file->layers);
      hashes["graph"].add(graph.ok() ? ir::print(graph->graph) : graph.error().message);
      for (const auto& [name, timer] : timers)
        hashes[name].add(text_of(timer->time_layers(file->layers, file->fusion)));
    };
    ask(text);
    TextChanges(text, kLayerWords).each(ask);
  }
  expect_hashes(kFile, "layers ", hashes);
}

TEST(Answers, OfManyProgramTimes) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const std::string_view name : sim::timed_chips(sim::Jobs::open)) {
    const npu::Chip chip = npu::find_chip(std::string(name)).value();
    const npu::Driver& driver = *npu::driver_of(chip).value();
    const auto costs = runtime::timing_costs(chip);
    ASSERT_TRUE(costs.ok()) << costs.error().message;
    Hash& hash = hashes[std::string(name)];
    for (const std::string text : kNumberTexts) {
      for (const auto& [number, usual] : numbers_of(text)) {
        if (number == "op" || number == "bytes") continue;
        for (const int64_t value : {1, 2, 3, 5, 8, 17, 33, 64, 100, 257}) {
          Numbers numbers = numbers_of(text);
          numbers[number] = std::to_string(value);
          auto graph = ir::parse(sized(text, numbers));
          if (!graph.ok() || !ir::infer_shapes(*graph).ok() || !ir::verify(*graph).ok()) continue;
          const compile::Options options{.driver = {.unproven = npu::Unproven::take}};
          const auto compiled = compile::compile(*graph, {&driver, chip}, options);
          for (size_t i = 0; compiled.ok() && i < compiled->parts.size(); ++i)
            if (const auto& program = compiled->parts[i].program) hash.add(text_of((*costs)(*program)));
        }
      }
    }
  }
  expect_hashes(kFile, "times ", hashes);
}

}  // namespace
}  // namespace skillet::answers
