// Runs of layers over several cores: the choice of runs by given costs, its notes, and bands that do not compile.
#include "compile/bands.h"

#include <gtest/gtest.h>

#include <functional>

#include "graph/passes/testing/layers.h"
#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

using passes::Layers;

struct Speeds {
  double core = 400, memory = 1000;  // bytes in a microsecond
};
Speeds speeds;  // of the last BandDriver

// Costs a microsecond for 100 elements of the result, plus its bytes; 3 to start.
std::vector<npu::Cost> costs_of(const npu::Chip&, const ir::Graph& graph, const npu::CompileOptions&, size_t cores) {
  std::vector<npu::Cost> out;
  for (const ir::Op& op : graph.ops) {
    const auto elems = static_cast<double>(graph.tensor(op.outputs[0]).shape.elems());
    const double share = std::min(speeds.core, speeds.memory / static_cast<double>(cores));
    out.push_back({.start_us = 3, .device_us = elems / 100 + elems / share});
  }
  return out;
}

class BandDriver : public passes::AddMulDriver {
 public:
  BandDriver() { speeds = {}; }
  npu::CostModel model{.of_ops = costs_of,
                       .memory_bytes_per_us = 1000,
                       .host_in_bytes_per_us = 2000,
                       .host_out_bytes_per_us = 500,
                       .submit_us = 4};
  int refused_height = -1;   // of a result
  int unproven_height = -1;  // of a result
  int bad_height = -1;       // of a result that the compiler refuses
  ErrorCode code = ErrorCode::out_of_range;

  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    const int height = graph.tensor(graph.op(op).outputs[0]).shape[1];
    if (height == refused_height || graph.op(op).kind == ir::OpKind::relu)
      return npu::Support::no(npu::Remedy::none, "no such height");
    return height == unproven_height ? npu::Support::yes_unproven("a new height") : npu::Support::yes();
  }
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph& graph, const npu::CompileOptions&) const override {
    npu::Program program;
    for (const ir::Op& op : graph.ops) {
      if (graph.tensor(op.outputs[0]).shape[1] == bad_height) return error(code, "{} rows", bad_height);
      program.operations.push_back({static_cast<ir::OpId>(program.operations.size()), "x", 1});
    }
    return program;
  }
  std::optional<npu::CostModel> costs(const npu::Chip&, const npu::Measured&) const override { return model; }
};

struct Net {
  ir::Shape image;
  std::vector<std::string> ops;
  const char* outputs;
};
const Net kChain = {{1, 48, 32, 8}, {"b=conv(a) k=3", "c=conv(b) k=3", "d=conv(c) k=3"}, "d"};
const Net kResidual = {{1, 48, 32, 8}, {"b=conv(a) k=3", "c=add(b,a)", "d=conv(c) k=3", "e=add(d,c)"}, "e"};
const Net kStrides = {{1, 48, 32, 8}, {"b=conv(a) k=3 s=2", "c=conv(b) k=3 s=2 c=16", "d=conv(c) k=3 c=4"}, "cd"};
const Net kTail = {{1, 40, 40, 8}, {"b=conv(a) k=3", "c=average(b) k=8 s=8", "d=conv(c) k=5 valid c=10"}, "d"};
const Net kStop = {{1, 48, 32, 8}, {"b=conv(a) k=3", "c=relu(b)", "d=conv(c) k=3", "e=conv(d) k=3"}, "e"};

// "N[b c]/2 C[d]": parts, by the tensors that their ops compute, with the number of their bands; and the notes.
std::string text_of(const Compiled& compiled, bool with_notes) {
  std::string out, notes;
  for (const Part& part : compiled.parts) {
    out += fmt::format("{}{}[", out.empty() ? "" : " ", part.partition.on_npu ? "N" : "C");
    for (const ir::OpId op : part.partition.op_map) out += compiled.graph.tensor(compiled.graph.op(op).outputs[0]).name;
    out += part.bands.empty() ? "]" : fmt::format("]/{}", part.bands.size());
    if (!part.note.empty()) notes += "\n" + part.note;
    EXPECT_EQ(part.program.has_value(), part.partition.on_npu && part.bands.empty());
    for (const Band& band : part.bands) EXPECT_EQ(band.program.operations.size(), band.rows.graph.ops.size());
    Part copy = part;
    std::string names;
    for (const PartProgram& one : programs(copy)) names += one.band + ";";
    std::string wanted = part.program ? ";" : "";
    for (size_t i = 0; i < part.bands.size(); ++i) wanted += fmt::format(", band {};", i);
    EXPECT_EQ(names, wanted);
  }
  return with_notes ? out + notes : out;
}

std::string compiled(const Net& net, const BandDriver& driver, Options options, bool with_notes = false) {
  const Layers layers(net.image, net.ops, net.outputs);
  EXPECT_EQ(layers.problem, "");
  options.rewrite = false;
  const auto got = compile(layers.graph, {&driver, {}}, options);
  return got.ok() ? text_of(*got, with_notes) : got.error().message;
}

struct Predicted {
  const char* what;
  const Net& net;
  Options options;
  const char* text;
  std::function<void(BandDriver&)> with = [](BandDriver&) {};
};
const Predicted kPredicted[] = {
    {"two",
     kChain,
     {.cores = 2},
     "N[bcd]/2\n"
     "in 2 bands of rows, with 4 % more work; predicted to take 56 % of the time in one piece"},
    {"three",
     kChain,
     {.cores = 3},
     "N[bcd]/3\n"
     "in 3 bands of rows, with 8 % more work; predicted to take 43 % of the time in one piece"},
    {"strides, and one result on the way",
     kStrides,
     {.cores = 2},
     "N[bcd]/2\n"
     "in 2 bands of rows, with 18 % more work; predicted to take 73 % of the time in one piece"},
    {"residuals",
     kResidual,
     {.cores = 2},
     "N[bcde]/2\n"
     "in 2 bands of rows, with 8 % more work; predicted to take 57 % of the time in one piece"},
    {"what needs all rows follows",
     kTail,
     {.cores = 2},
     "N[bc]/2 N[d]\nin 2 bands of rows, with 0 % more work; with the following part predicted to take 69 % of the "
     "time in one piece"},
    {"an op of the CPU between",
     kStop,
     {.cores = 2},
     "N[b]/2 C[c] N[de]/2\n"
     "in 2 bands of rows, with 0 % more work; predicted to take 58 % of the time in one piece\n"
     "in 2 bands of rows, with 2 % more work; predicted to take 56 % of the time in one piece"},
    {"the memory is shared",
     kChain,
     {.cores = 3},
     "N[bcd]/3\n"
     "in 3 bands of rows, with 8 % more work; predicted to take 78 % of the time in one piece",
     [](BandDriver&) { speeds.memory = 90; }},
    {"the cores' way to it is slow",
     kChain,
     {.cores = 3},
     "N[bcd]/3\n"
     "in 3 bands of rows, with 8 % more work; predicted to take 39 % of the time in one piece",
     [](BandDriver&) { speeds.core = 50; }},
    {"starting costs much",
     kChain,
     {.cores = 2},
     "N[bcd]\n"
     "in one piece; 3 ops in 2 bands of rows are predicted to take 119 % of the time in one piece",
     [](BandDriver& d) { d.model.submit_us = 400; }},
    {"as fast, but divided",
     kChain,
     {.cores = 2, .runs = Runs::fastest},
     "N[bcd]/2\n"
     "in 2 bands of rows, with 4 % more work; predicted to take 119 % of the time in one piece",
     [](BandDriver& d) { d.model.submit_us = 400; }},
    {"the host is slow to fill",
     kChain,
     {.cores = 2},
     "N[bcd]/2\n"
     "in 2 bands of rows, with 4 % more work; predicted to take 86 % of the time in one piece",
     [](BandDriver& d) { d.model.host_in_bytes_per_us = 20; }},
    {"the host is slow to fetch",
     kResidual,
     {.cores = 2, .runs = Runs::fastest},
     "N[bcde]/2\n"
     "in 2 bands of rows, with 8 % more work; predicted to take 81 % of the time in one piece",
     [](BandDriver& d) { d.model.host_out_bytes_per_us = 20; }},
    {"the longest",
     kTail,
     {.cores = 4, .runs = Runs::longest},
     "N[bc]/4 N[d]\nin 4 bands of rows, with 0 % more work; with the following part predicted to take 60 % of the "
     "time in one piece"},
    {"the fastest of them",
     kTail,
     {.cores = 4, .runs = Runs::fastest},
     "N[b]/4 N[cd]\nin 4 bands of rows, with 0 % more work; with the following part predicted to take 54 % of the "
     "time in one piece"},
};

TEST(PlanBands, SaysWhatIsPredicted) {
  for (const Predicted& row : kPredicted) {
    BandDriver driver;
    row.with(driver);
    EXPECT_EQ(compiled(row.net, driver, row.options, true), row.text) << row.what;
  }
}

// Cases where no run is divided: the note is empty, and nothing is in bands.
TEST(PlanBands, OnlyWhereTheyAreWanted) {
  const BandDriver driver;
  const struct {
    const char* what;
    Options options;
    const char* text;
  } kRows[] = {
      {"two", {.cores = 2}, "N[bcd]/2"},
      {"one", {.cores = 1}, "N[bcd]"},
      {"results inside are kept", {.driver = {.keep_intermediates = true}, .cores = 2}, "N[bcd]"},
      {"as recorded", {.driver = {.tuning = npu::Tuning::recorded}, .cores = 2}, "N[bcd]"},
      {"not profitable to offload", {.min_macs_per_byte = 1'000'000, .cores = 2}, "C[bcd]"},
      {"worth it", {.min_macs_per_byte = 10, .cores = 2}, "N[bcd]/2"},
  };
  for (const auto& row : kRows) EXPECT_EQ(compiled(kChain, driver, row.options), row.text) << row.what;
}

// The driver checks each band's rows: 25 rows are a band of b with the row below.
TEST(PlanBands, TakesTheNextBestWhereABandIsRefused) {
  BandDriver driver;
  driver.refused_height = 26;
  EXPECT_EQ(compiled(kChain, driver, {.cores = 2}), "N[bc]/2 N[d]");
  driver.refused_height = -1;
  driver.unproven_height = 26;
  EXPECT_EQ(compiled(kChain, driver, {.driver = {.unproven = npu::Unproven::refuse}, .cores = 2}), "N[bc]/2 N[d]");
  EXPECT_EQ(compiled(kChain, driver, {.driver = {.unproven = npu::Unproven::take}, .cores = 2}), "N[bcd]/2");
}

TEST(PlanBands, OnePieceWhereTheyDoNotCompile) {
  BandDriver driver;
  driver.bad_height = 26;
  EXPECT_EQ(compiled(kChain, driver, {.cores = 2}), "N[bcd]");
  driver.code = ErrorCode::invalid_argument;
  EXPECT_EQ(compiled(kChain, driver, {.cores = 2}), "26 rows") << "no band's fault";
}

// With a cost model, a part is first compared with the CPU undivided; parts that stay on the NPU are then divided.
TEST(PlanBands, AfterTheWeighing) {
  const BandDriver driver;
  CostModel cost_model;
  double us = 1;
  cost_model.program_costs = [&](const npu::Program& program) -> Result<std::vector<OperationCost>> {
    return std::vector<OperationCost>(program.operations.size(), OperationCost{.device_us = us});
  };
  cost_model.cpu = plain_cpu(1000, 1000);
  cost_model.in_bytes_per_us = cost_model.out_bytes_per_us = 1000;
  EXPECT_EQ(compiled(kChain, driver, {.cost_model = &cost_model, .cores = 2}), "N[bcd]/2");
  EXPECT_EQ(compiled(kStop, driver, {.cost_model = &cost_model, .cores = 2}), "N[b]/2 C[c] N[de]/2");
  us = 1e7;
  EXPECT_EQ(compiled(kChain, driver, {.cost_model = &cost_model, .cores = 2}), "C[bcd]");
}

}  // namespace
}  // namespace skillet::compile
