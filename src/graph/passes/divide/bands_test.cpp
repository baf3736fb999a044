#include "graph/passes/divide/bands.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "graph/passes/testing/digests.h"
#include "graph/passes/testing/layers.h"
#include "graph/ref/ref.h"

namespace skillet::passes {
namespace {

std::span<uint8_t> rows_of(std::span<uint8_t> image, const ir::Tensor& tensor, const Rows& rows) {
  const size_t row = static_cast<size_t>(tensor.bytes() / tensor.shape[1]);
  return image.subspan(static_cast<size_t>(rows.begin) * row, static_cast<size_t>(rows.count()) * row);
}

// Compares the bands' results, put together, with the run's. Returns an empty text, or what differs.
std::string check(const ir::Graph& run, const std::vector<Band>& bands, const Bytes& input) {
  auto whole = ref::Interpreter::create(run);
  if (!whole.ok()) return whole.error().message;
  std::ranges::copy(input, whole->tensor(run.inputs[0]).begin());
  if (auto ran = whole->run(); !ran.ok()) return ran.error().message;
  std::vector<int32_t> next(run.outputs.size(), 0);
  for (const Band& band : bands) {
    auto part = ref::Interpreter::create(band.graph);
    if (!part.ok()) return part.error().message + "\n" + ir::print(band.graph);
    const ir::TensorId in = run.inputs[0];
    const Rows& rows = band.rows[static_cast<size_t>(in)];
    std::ranges::copy(rows_of(whole->tensor(in), run.tensor(in), rows), part->tensor(in).begin());
    if (auto ran = part->run(); !ran.ok()) return ran.error().message;
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      const ir::TensorId id = run.outputs[o];
      const Rows &all = band.rows[static_cast<size_t>(id)], &gives = band.gives[o];
      if (gives.begin != next[o]) return fmt::format("{} follows {}", gives.begin, next[o]);
      next[o] = gives.end;
      const Rows local{gives.begin - all.begin, gives.end - all.begin};
      if (!std::ranges::equal(rows_of(part->tensor(id), run.tensor(id), local),
                              rows_of(whole->tensor(id), run.tensor(id), gives)))
        return fmt::format("rows {} to {} of '{}' differ\n{}", gives.begin, gives.end, run.tensor(id).name,
                           ir::print(band.graph));
    }
  }
  for (size_t o = 0; o < next.size(); ++o) {
    if (next[o] != run.tensor(run.outputs[o]).shape[1]) return "rows are missing at the end";
  }
  return "";
}

struct Net {
  const char* name;
  ir::Shape image;
  std::vector<std::string> ops;
  const char* outputs;
  int most = 4;  // bands; each must have a row
};

const std::vector<Net>& nets() {
  static const std::vector<Net> kNets = {
      {"one", {1, 9, 5, 3}, {"b=conv(a) k=3 c=4"}, "b"},
      {"odd heights", {1, 23, 7, 3}, {"b=conv(a) k=3 s=2 c=4", "c=conv(b) k=3 s=2 c=4"}, "c"},
      {"even heights", {1, 24, 8, 3}, {"b=conv(a) k=3 s=2 c=4", "c=conv(b) k=3 s=2 c=4"}, "c"},
      {"even filters", {1, 15, 8, 3}, {"b=conv(a) k=4 s=2 c=4", "c=conv(b) k=2 c=4"}, "c"},
      {"stride 3", {1, 31, 8, 2}, {"b=conv(a) k=5 s=3 c=4", "c=depthwise(b) k=3"}, "c"},
      {"a stride beyond the filter", {1, 33, 8, 2}, {"b=conv(a) k=1 s=3 c=4", "c=conv(b) k=2 s=3 valid c=2"}, "c", 3},
      {"valid", {1, 21, 9, 3}, {"b=conv(a) k=3 valid c=4", "c=conv(b) k=5 s=2 valid c=4"}, "c"},
      {"dilation", {1, 25, 13, 3}, {"b=conv(a) k=3 d=2 c=4", "c=depthwise(b) k=3 d=4"}, "c"},
      {"dilation, valid", {1, 25, 20, 3}, {"b=conv(a) k=3 d=3 valid c=4"}, "b"},
      {"large filters", {1, 12, 12, 2}, {"b=conv(a) k=7 c=4", "c=conv(b) k=9 c=4"}, "c"},
      {"residual", {1, 14, 6, 4}, {"b=conv(a) k=3 c=4", "c=add(a,b)"}, "c"},
      {"residuals",
       {1, 17, 6, 4},
       {"b=conv(a) c=8", "c=depthwise(b) k=3", "d=conv(c) c=4", "e=add(d,a)", "f=conv(e) c=8", "g=depthwise(f) k=3",
        "h=conv(g) c=4", "i=add(h,e)", "j=depthwise(i) k=3 s=2"},
       "j"},
      {"read inside and outside", {1, 16, 6, 4}, {"b=conv(a) k=3 c=4", "c=conv(b) k=3 s=2 c=4"}, "bc"},
      {"joined", {1, 13, 6, 4}, {"b=conv(a) k=5 c=4", "c=conv(a) c=2", "d=join(b,c)", "e=conv(d) k=3 c=4"}, "e"},
      {"halves", {1, 13, 6, 4}, {"b=halves(a)", "c=conv(b) k=3 c=2", "d=add(c,B)"}, "d"},
      {"one half only", {1, 13, 6, 4}, {"b=halves(a)", "c=conv(B) k=3 c=2"}, "c"},
      {"pooling", {1, 22, 9, 3}, {"b=max(a) k=3 s=2", "c=average(b) k=2 s=2 valid", "d=average(c) k=3"}, "d"},
      {"padding before", {1, 15, 9, 3}, {"b=pad(a) p=1", "c=conv(b) k=3 s=2 valid c=4", "d=conv(c) k=3 c=4"}, "d"},
      {"padding that is also read", {1, 12, 9, 4}, {"b=pad(a) p=2", "c=conv(b) k=3 c=4", "d=add(b,c)"}, "d"},
      {"padding of what has a halo",
       {1, 12, 9, 4},
       {"b=conv(a) k=3 c=4", "c=pad(b) p=3", "d=conv(c) k=7 valid c=4", "e=add(d,b)"},
       "e"},
      {"rows of one pixel", {1, 40, 1, 1}, {"b=conv(a) k=3 c=1", "c=relu(b)"}, "c"},
      {"one row for each band", {1, 4, 6, 3}, {"b=conv(a) k=3 c=4", "c=conv(b) k=3 c=4"}, "c"},
      {"halves of halves",
       {1, 32, 8, 3},
       {"b=conv(a) k=3 s=2 c=4", "c=conv(b) k=3 s=2 c=4", "d=conv(c) k=3 s=2 c=4"},
       "d"},
  };
  return kNets;
}

TEST(Bands, ComputeWhatTheRunComputes) {
  for (const Net& net : nets()) {
    SCOPED_TRACE(net.name);
    Layers layers(net.image, net.ops, net.outputs);
    ASSERT_EQ(layers.problem, "");
    EXPECT_EQ(row_wise_ops(layers.graph).size(), layers.graph.ops.size());
    const Bytes input = layers.random_bytes(static_cast<size_t>(net.image.elems()));
    for (int count = 1; count <= net.most; ++count) {
      const std::vector<Band> bands = split_bands(layers.graph, count);
      ASSERT_EQ(bands.size(), static_cast<size_t>(count));
      EXPECT_EQ(check(layers.graph, bands, input), "") << count << " bands";
    }
  }
}

// The rows of all tensors, including unused ones. After an intended change: check the text in the file that
// SKILLET_BANDS names, then set the new digest.
TEST(Bands, HaveTheRowsThatTheyHad) {
  std::string text;
  for (const Net& net : nets()) {
    const Layers layers(net.image, net.ops, net.outputs);
    for (int count = 2; count <= net.most; ++count) {
      for (const Band& band : split_bands(layers.graph, count)) {
        text += fmt::format("{} {}:", net.name, count);
        for (const Rows& rows : band.rows) text += fmt::format(" {}-{}", rows.begin, rows.end);
        for (const Rows& rows : band.gives) text += fmt::format(" gives {}-{}", rows.begin, rows.end);
        text += "\n" + ir::print_without_constants(band.graph);
      }
    }
  }
  if (const char* path = std::getenv("SKILLET_BANDS")) std::ofstream(path) << text;
  EXPECT_EQ(fmt::format("{:016x}", digest(text)), "1cfa7c46ae12e081");
}

// Ops that are row-wise only under a condition; each text of an op has one thing changed.
TEST(Bands, RowWiseIsWhatKeepsRows) {
  const struct {
    const char *tensors, *op;
    size_t ops;
  } kRows[] = {
      {"1x8x4x2;1x8x4x2", "RELU in=[0] out=[1]", 1},
      {"1x8x4x2;1x4x8x2", "TRANSPOSE in=[0 2] out=[1]", 0},
      {"2x8x4x2;2x8x4x2", "RELU in=[0] out=[1]", 0},
      {"8x4x2;8x4x2", "RELU in=[0] out=[1]", 0},
      {"1x8x4x2;1x16x4x2", "CONCATENATION in=[0 0] out=[1] axis=1", 0},
      {"1x8x4x2;1x16x4x2", "CONCATENATION in=[0 0] out=[1] axis=-3", 0},
      {"1x8x4x2;1x8x8x2", "CONCATENATION in=[0 0] out=[1] axis=2", 0},
      {"1x8x4x2;1x8x4x4", "CONCATENATION in=[0 0] out=[1] axis=3", 1},
      {"1x8x4x2;1x8x4x4", "CONCATENATION in=[0 0] out=[1] axis=-1", 1},
      {"1x8x4x2;1x8x4x2", "ADD in=[0 3] out=[1]", 1},   // one for each channel
      {"1x8x4x2;1x8x4x2", "ADD in=[0 4] out=[1]", 0},   // one for each row
      {"1x8x4x2;1x8x4x2", "ADD in=[0 5] out=[1]", 1},   // an image of one row
      {"1x8x4x2;1x12x4x2", "PAD in=[0 6] out=[1]", 1},  // rows before and after
      {"1x8x4x2;1x4x4x2", "MAX_POOL_2D in=[0] out=[1] stride_h=2 filter_h=2", 1},
      {"1x8x4x2;1x1x1x2", "MEAN in=[0 7] out=[1] keep_dims=true", 0},
  };
  for (const auto& row : kRows) {
    const std::string_view both = row.tensors;
    const size_t cut = both.find(';');
    const auto graph = ir::parse(fmt::format(
        "graph \"rows\"\ntensor 0 \"a\" uint8 {} scale=0.5 zero=3\ntensor 1 \"b\" uint8 {} scale=0.5 zero=3\n"
        "tensor 2 \"order\" int32 4 const=[0 2 1 3]\ntensor 3 \"k\" uint8 1x1x1x2 scale=0.5 zero=3 const=[1 2]\n"
        "tensor 4 \"r\" uint8 1x8x1x1 scale=0.5 zero=3 const=[1 2 3 4 5 6 7 8]\n"
        "tensor 5 \"i\" uint8 1x1x4x2 scale=0.5 zero=3 const=[1 2 3 4 5 6 7 8]\n"
        "tensor 6 \"p\" int32 4x2 const=[0 0 1 3 0 0 0 0]\ntensor 7 \"x\" int32 2 const=[1 2]\n"
        "inputs 0\noutputs 1\nop 0 {}\n",
        both.substr(0, cut), both.substr(cut + 1), row.op));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ASSERT_TRUE(ir::verify(*graph).ok()) << row.op << ": " << ir::verify(*graph).error().message;
    EXPECT_EQ(row_wise_ops(*graph).size(), row.ops) << row.op;
  }
}

// A band differs from the run only by its rows.
TEST(Bands, HaveTheRowsThatTheyNeed) {
  const struct {
    Net net;
    const char* rows;  // of the second of three bands: each of its images
  } kRows[] = {
      {{"", {1, 12, 4, 2}, {"b=conv(a) k=3 c=2"}, "b"}, "a 3-9, b 4-8"},
      {{"", {1, 12, 4, 2}, {"b=conv(a) k=3 c=2", "c=conv(b) k=3 c=2"}, "c"}, "a 2-10, b 3-9, c 4-8"},
      {{"", {1, 12, 4, 2}, {"b=conv(a) k=3 s=2 c=2"}, "b"}, "a 4-9, b 2-4"},
      {{"", {1, 12, 4, 2}, {"b=conv(a) k=3 d=2 c=2"}, "b"}, "a 2-10, b 4-8"},
      {{"", {1, 14, 4, 2}, {"b=conv(a) k=3 valid c=2"}, "b"}, "a 4-10, b 4-8"},
      // The sum has the rows that another reader of its operand needs.
      {{"", {1, 12, 4, 2}, {"b=conv(a) k=3 c=2", "c=add(a,b)"}, "c"}, "a 3-9, b 3-9, c 3-9"},
      {{"", {1, 12, 4, 2}, {"b=pad(a) p=1", "c=conv(b) k=3 valid c=2"}, "c"}, "a 3-9, b 4-10, c 4-8"},
  };
  for (const auto& row : kRows) {
    const Layers layers(row.net.image, row.net.ops, row.net.outputs);
    ASSERT_EQ(layers.problem, "");
    const std::vector<Band> bands = split_bands(layers.graph, 3);
    ASSERT_EQ(bands.size(), 3U);
    std::string text;
    for (size_t i = 0; i < layers.graph.tensors.size(); ++i) {
      const Rows& rows = bands[1].rows[i];
      if (rows.count() > 0)
        text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", layers.graph.tensors[i].name, rows.begin, rows.end);
    }
    EXPECT_EQ(text, row.rows);
  }
}

TEST(Bands, AsText) {
  Layers layers({1, 12, 4, 1}, {"b=conv(a) k=3 s=2 c=1"}, "b");
  ir::set_constant(layers.graph.tensors[1], Bytes(9, 130));
  layers.graph.tensors[1].quant.scales = {0.5F};
  layers.graph.tensors[2].quant.scales = {0.025F};
  std::string text;
  for (const Band& band : split_bands(layers.graph, 2)) text += ir::print(band.graph);
  EXPECT_EQ(text,
            "graph \"layers/band0\"\n"
            "tensor 0 \"a\" uint8 1x7x4x1 scale=0.05 zero=120\n"
            "tensor 1 \"constant\" uint8 1x3x3x1 scale=0.5 zero=128 const=[130 130 130 130 130 130 130 130 130]\n"
            "tensor 2 \"constant\" int32 1 scale=0.025 zero=0 const=[65]\n"
            "tensor 3 \"b\" uint8 1x3x2x1 scale=0.05 zero=120\n"
            "inputs 0\n"
            "outputs 3\n"
            "op 0 CONV_2D in=[0 1 2] out=[3] rows=[0 0] stride_h=2 stride_w=2\n"
            "graph \"layers/band1\"\n"
            "tensor 0 \"a\" uint8 1x6x4x1 scale=0.05 zero=120\n"
            "tensor 1 \"constant\" uint8 1x3x3x1 scale=0.5 zero=128 const=[130 130 130 130 130 130 130 130 130]\n"
            "tensor 2 \"constant\" int32 1 scale=0.025 zero=0 const=[65]\n"
            "tensor 3 \"b\" uint8 1x3x2x1 scale=0.05 zero=120\n"
            "inputs 0\n"
            "outputs 3\n"
            "op 0 CONV_2D in=[0 1 2] out=[3] rows=[0 1] stride_h=2 stride_w=2\n");
}

TEST(Bands, NoneWhereAnOutputHasTooFewRows) {
  const Layers layers({1, 12, 4, 2}, {"b=conv(a) k=3 s=4 c=2"}, "b");
  EXPECT_EQ(split_bands(layers.graph, 3).size(), 3U);
  EXPECT_TRUE(split_bands(layers.graph, 4).empty());
}

// Ops that need all rows end a run, and later ops are in none.
TEST(Bands, RunsEndWhereAllRowsAreNeeded) {
  const auto graph = ir::parse(
      "graph \"run\"\n"
      "tensor 0 \"a\" uint8 1x8x4x2 scale=0.5 zero=3\n"
      "tensor 1 \"b\" uint8 1x8x4x2 scale=0.5 zero=3\n"
      "tensor 2 \"axes\" int32 2 const=[1 2]\n"
      "tensor 3 \"mean\" uint8 1x1x1x2 scale=0.5 zero=3\n"
      "tensor 4 \"c\" uint8 1x8x4x2 scale=0.5 zero=3\n"
      "tensor 5 \"d\" uint8 1x8x4x2 scale=0.5 zero=3\n"
      "tensor 6 \"joined\" uint8 1x16x4x2 scale=0.5 zero=3\n"
      "tensor 7 \"e\" uint8 1x16x4x2 scale=0.5 zero=3\n"
      "tensor 8 \"images\" uint8 2x8x4x2 scale=0.5 zero=3\n"
      "tensor 9 \"f\" uint8 2x8x4x2 scale=0.5 zero=3\n"
      "inputs 0 8\n"
      "outputs 5 7 9\n"
      "op 0 RELU in=[0] out=[1]\n"
      "op 1 MEAN in=[1 2] out=[3] keep_dims=true\n"
      "op 2 MUL in=[1 3] out=[4]\n"
      "op 3 RELU in=[1] out=[5]\n"
      "op 4 CONCATENATION in=[5 5] out=[6] axis=1\n"
      "op 5 RELU in=[6] out=[7]\n"
      "op 6 RELU in=[8] out=[9]\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_TRUE(ir::verify(*graph).ok()) << ir::verify(*graph).error().message;
  EXPECT_EQ(row_wise_ops(*graph), (std::vector<ir::OpId>{0, 3}));
}

}  // namespace
}  // namespace skillet::passes
