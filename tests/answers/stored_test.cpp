// What is read from the stored result of a compilation with one byte changed, and from one whose constants are shorter
// or whose model is another: the reason for refusing it, or the result. See graphs_test.cpp.
#include "answers/changes.h"
#include "answers/lines.h"
#include "base/log.h"
#include "compile/compile.h"
#include "compile/report.h"
#include "compile/stored_result.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr size_t kPlaces = 3000;  // about that many bytes of a result are changed

// Some operations on the NPU, some not, and one that passes rewrite with new constants.
constexpr const char* kGraph = R"(graph "stored"
tensor 0 "x" int8 1x12x12x16 scale=0.05 zero=3
tensor 1 "w" int8 16x3x3x16 scale=0.02 zero=0 const=random:1
tensor 2 "b" int32 16 scale=0.001 zero=0 const=random:2
tensor 3 "y" int8 1x12x12x16 scale=0.5 zero=4
tensor 4 "e" int8 1x12x12x16 scale=0.5 zero=4
tensor 5 "m" int8 1x6x6x16 scale=0.5 zero=4
tensor 6 "axes" int32 2 const=[1 2]
tensor 7 "a" int8 1x1x1x16 scale=0.5 zero=4
tensor 8 "v" int8 16x1x1x16 scale=0.02 zero=0 const=random:3
tensor 9 "z" int8 1x1x1x16 scale=0.5 zero=4
inputs 0
outputs 9 5
op 0 CONV_2D in=[0 1 2] out=[3] padding=same activation=relu6
op 1 ELU in=[3] out=[4]
op 2 MAX_POOL_2D in=[4] out=[5] padding=valid filter_h=2 filter_w=2 stride_h=2 stride_w=2
op 3 MEAN in=[5 6] out=[7] keep_dims=true
op 4 CONV_2D in=[7 8 -] out=[9] padding=same
)";

// All text of a result but its programs, which are stored elsewhere.
std::string text_of(const compile::Compiled& compiled) {
  std::string out = compile::print_offload(compiled) + ir::print(compiled.graph);
  for (const compile::Part& part : compiled.parts) {
    out += fmt::format("{} {} {}", part.partition.on_npu, part.note, part.key) + ir::print(part.partition.graph);
    for (const compile::Band& band : part.bands) out += ir::print(band.rows.graph);
  }
  for (const compile::OpPlace& place : compiled.ops) {
    out += fmt::format("{} {} {} {} {} {}", place.on_npu, place.reason, place.note, place.unproven, place.part,
                       static_cast<int>(place.remedy));
    for (const npu::Assumption* one : place.stands_on) out += one->name;
  }
  return out + compile::print(compiled.rewrites);
}

TEST(Answers, OfManyStoredResults) {
  const log::ScopedLevel quiet(log::Level::error);
  const ir::Graph graph = ir::parse(kGraph).value();
  ASSERT_TRUE(ir::verify(graph).ok()) << ir::verify(graph).error().message;
  ir::Graph other = graph;
  other.tensor(1).shape.dims[0] = 17;
  std::map<std::string, Hash> hashes;
  for (const char* name : {"a311d", "rk3588", "imx93"}) {
    const npu::Chip chip = npu::find_chip(name).value();
    const compile::Target target{.driver = npu::driver_of(chip).value(), .chip = chip};
    compile::Options options{.driver = {.tuning = npu::Tuning::tuned, .unproven = npu::Unproven::take}};
    options.cores = 3;
    options.runs = compile::Runs::longest;
    const compile::Compiled made = compile::compile(graph, target, options).value();
    const compile::StoredResult good = compile::store(made, graph, target).value();
    Hash& hash = hashes[name];
    size_t refused = 0;
    const auto ask = [&](const Bytes& bytes, const Bytes& constants, const ir::Graph& model) {
      const auto read = compile::restore(bytes, Bytes(constants), model, target);
      hash.add(read.ok() ? text_of(*read) : read.error().message);
      refused += read.ok() ? 0 : 1;
    };
    EXPECT_EQ(text_of(compile::restore(good.bytes, Bytes(good.constants), graph, target).value()), text_of(made));
    each_change(good.bytes, std::max<size_t>(good.bytes.size() / kPlaces, 1),
                [&](const Bytes& bytes) { ask(bytes, good.constants, graph); });
    EXPECT_GT(refused, hash.count() / 4) << name;
    EXPECT_LT(refused, hash.count()) << name;
    for (size_t less = 1; less <= good.constants.size() && less < 300; less *= 2)
      ask(good.bytes, Bytes(good.constants.begin(), good.constants.end() - static_cast<std::ptrdiff_t>(less)), graph);
    ask(good.bytes, good.constants, other);
  }
  expect_hashes(kFile, "stored ", hashes);
}

}  // namespace
}  // namespace skillet::answers
