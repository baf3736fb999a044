// Operations that move, cut, join or select pixels on the simulated chip are exact; so are averages composed of
// several.
#include "graph_judge.h"
#include "random_graph.h"

namespace skillet {
namespace {

using namespace rockchip_graphs;  // NOLINT: the text forms

constexpr float kScale = 0.02F;

std::string same(int id, const std::string& shape, const char* type = "uint8") {
  return tensor(id, shape.c_str(), kScale, 5, type);
}

TEST(RockchipMoves, JoinedRowsAndColumns) {
  const auto of = [](const char* a, const char* b, const char* out, int axis, const char* type = "uint8") {
    return same(0, a, type) + same(1, b, type) + same(2, out, type) +
           fmt::format("inputs 0 1\noutputs 2\nop 0 CONCATENATION in=[0 1] out=[2] axis={}\n", axis);
  };
  const Row rows[] = {
      {"rows", of("1x3x7x20", "1x5x7x20", "1x8x7x20", 1), 2},
      {"rows, signed", of("1x3x7x20", "1x5x7x20", "1x8x7x20", -3, "int8"), 2},
      {"columns", of("1x5x3x40", "1x5x9x40", "1x5x12x40", 2), 2},
      {"columns, one each", of("1x5x1x3", "1x5x1x3", "1x5x2x3", 2), 2},
      {"more channels than a group", of("1x3x4x100", "1x2x4x100", "1x5x4x100", 1), 2},
      {"boxes of a detector", of("1x400x4", "1x100x4", "1x500x4", 1), 2},
      {"a matrix", of("3x40", "2x40", "5x40", 0), 2},
      {"one channel", of("1x3x4x1", "1x3x5x1", "1x3x9x1", 2), 2},
  };
  judge(rows, 0);
}

// Pieces whose channels are no multiple of 16.
TEST(RockchipMoves, JoinedChannels) {
  const auto of = [](const char* a, const char* b, const char* c, const char* out, const char* type = "uint8") {
    return same(0, a, type) + same(1, b, type) + same(2, c, type) + same(3, out, type) +
           "inputs 0 1 2\noutputs 3\nop 0 CONCATENATION in=[0 1 2] out=[3] axis=-1\n";
  };
  const Row rows[] = {
      {"small ones", of("1x4x5x3", "1x4x5x7", "1x4x5x1", "1x4x5x11"), 4},
      {"over surfaces", of("1x4x5x17", "1x4x5x16", "1x4x5x40", "1x4x5x73", "int8"), 4},
      {"one pixel", of("1x20", "1x5", "1x1", "1x26"), 4},
      {"the last one alone ends within", of("1x3x3x16", "1x3x3x32", "1x3x3x5", "1x3x3x53"), 3},
      {"the same twice",
       same(0, "1x3x4x5") + same(1, "1x3x4x10") + "inputs 0\noutputs 1\nop 0 CONCATENATION in=[0 0] out=[1] axis=3\n",
       3},
      {"within another one",
       same(0, "1x3x4x5") + same(1, "1x3x4x10") + same(2, "1x3x4x16") + same(3, "1x3x4x26") + same(4, "1x3x4x36") +
           "inputs 0 2\noutputs 4\nop 0 CONCATENATION in=[0 0] out=[1] axis=3\n"
           "op 1 CONCATENATION in=[2 1] out=[3] axis=3\nop 2 CONCATENATION in=[1 3] out=[4] axis=3\n",
       0},
  };
  judge(rows, 0);
  const Row scaled[] = {
      {"other scales",
       tensor(0, "1x3x7x20", 0.02F, 5) + tensor(1, "1x3x7x9", 0.03F, 100) + tensor(2, "1x3x7x29", 0.05F, 60) +
           "inputs 0 1\noutputs 2\nop 0 CONCATENATION in=[0 1] out=[2] axis=3\n",
       3},
  };
  judge(scaled, 1);
}

// Joining leaves the bytes after the pieces in memory unchanged, for all combinations.
TEST(RockchipMoves, JoinedTwice) {
  const std::string text =
      same(0, "1x4x5x48") + same(1, "1x4x5x48") + same(2, "1x8x5x48") + same(3, "1x8x5x96") + same(4, "1x8x5x48") +
      "inputs 0 1\noutputs 3\n" + "op 0 CONCATENATION in=[0 1] out=[2] axis=1\n" +
      "op 1 CONCATENATION in=[1 0] out=[4] axis=1\n" + "op 2 CONCATENATION in=[2 4] out=[3] axis=3\n";
  const Row rows[] = {{"rows, then channels", text, 5}};
  judge(rows, 0);
}

TEST(RockchipMoves, JoinedInAnotherScale) {
  const Row rows[] = {
      {"rows",
       tensor(0, "1x3x7x20", 0.02F, 5) + tensor(1, "1x5x7x20", 0.03F, 100) + tensor(2, "1x8x7x20", 0.05F, 60) +
           "inputs 0 1\noutputs 2\nop 0 CONCATENATION in=[0 1] out=[2] axis=1\n",
       2},
  };
  judge(rows, 1);
}

TEST(RockchipMoves, DividedRowsAndColumns) {
  const auto of = [](const char* in, const char* a, const char* b, int axis) {
    return same(0, in) + numbers(1, "scalar", {axis}) + same(2, a) + same(3, b) +
           "inputs 0\noutputs 2 3\nop 0 SPLIT in=[1 0] out=[2 3] count=2\n";
  };
  const Row rows[] = {
      {"rows", of("1x6x7x20", "1x3x7x20", "1x3x7x20", 1), 2},
      {"columns", of("1x5x8x70", "1x5x4x70", "1x5x4x70", -2), 2},
      {"sizes that differ",
       same(0, "1x6x9x20") + numbers(1, "2", {7, 2}) + numbers(2, "scalar", {2}) + same(3, "1x6x7x20") +
           same(4, "1x6x2x20") + "inputs 0\noutputs 3 4\nop 0 SPLIT_V in=[0 1 2] out=[3 4] count=2\n",
       2},
  };
  judge(rows, 0);
}

TEST(RockchipMoves, Slices) {
  const auto slice = [](const char* in, std::initializer_list<int32_t> begin, std::initializer_list<int32_t> size,
                        const char* out) {
    return same(0, in) + numbers(1, "4", begin) + numbers(2, "4", size) + same(3, out) +
           "inputs 0\noutputs 3\nop 0 SLICE in=[0 1 2] out=[3]\n";
  };
  const auto strided = [](const char* in, std::initializer_list<int32_t> begin, std::initializer_list<int32_t> end,
                          std::initializer_list<int32_t> step, const char* out, const char* masks = "") {
    return same(0, in) + numbers(1, "4", begin) + numbers(2, "4", end) + numbers(3, "4", step) + same(4, out) +
           fmt::format("inputs 0\noutputs 4\nop 0 STRIDED_SLICE in=[0 1 2 3] out=[4]{}\n", masks);
  };
  const Row rows[] = {
      {"a rectangle", slice("1x9x11x20", {0, 2, 3, 0}, {1, 4, 5, 20}, "1x4x5x20"), 1},
      {"to the end", slice("1x9x11x20", {0, 8, 10, 0}, {1, -1, -1, -1}, "1x1x1x20"), 1},
      {"channels too", slice("1x9x11x100", {0, 1, 0, 32}, {1, 8, 11, 41}, "1x8x11x41"), 1},
      {"every other pixel", strided("1x8x10x3", {0, 0, 0, 0}, {1, 8, 10, 3}, {1, 2, 2, 1}, "1x4x5x3"), 1},
      {"every other pixel, from the second",
       strided("1x9x10x20", {0, 1, 1, 0}, {1, 9, 10, 20}, {1, 2, 2, 1}, "1x4x5x20"), 1},
      {"from the end", strided("1x9x10x20", {0, -3, -4, 0}, {0, -1, 0, 0}, {1, 1, 1, 1}, "1x2x4x20", " end_mask=13"),
       1},
      {"masks", strided("1x9x10x20", {0, 5, 7, 0}, {1, 6, 8, 20}, {1, 3, 3, 1}, "1x3x4x20", " begin_mask=6 end_mask=6"),
       1},
  };
  judge(rows, 0);
}

TEST(RockchipMoves, LargerAndSmaller) {
  std::vector<Row> rows;
  for (const char* kind : {"MAXIMUM", "MINIMUM"}) {
    for (const char* type : {"uint8", "int8"}) {
      for (const char* shape : {"1x7x9x40", "1x1x1x3", "5x20"}) {
        rows.push_back({kind,
                        same(0, shape, type) + same(1, shape, type) + same(2, shape, type) +
                            fmt::format("inputs 0 1\noutputs 2\nop 0 {} in=[0 1] out=[2]\n", kind),
                        1});
      }
    }
  }
  judge(rows, 0);
}

TEST(RockchipMoves, LargestAndSmallestOfImages) {
  std::vector<Row> rows;
  const struct {
    const char *in, *axes, *out;
    std::initializer_list<int32_t> over;
    size_t operations;
  } cases[] = {
      {"1x7x9x40", "2", "1x1x1x40", {1, 2}, 8},
      {"1x7x9x40", "1", "1x1x9x40", {1}, 4},
      {"1x7x9x40", "1", "1x7x1x40", {-2}, 5},
      {"1x40x33x20", "2", "1x1x1x20", {2, 1}, 13},
  };
  for (const char* kind : {"REDUCE_MAX", "REDUCE_MIN"}) {
    for (const auto& c : cases)
      rows.push_back({kind,
                      same(0, c.in) + numbers(1, c.axes, c.over) + same(2, c.out) +
                          fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2] keep_dims=true\n", kind),
                      c.operations});
  }
  judge(rows, 0);
}

TEST(RockchipMoves, BlocksBecomeChannels) {
  const auto of = [](const char* in, const char* out, int block) {
    return same(0, in) + same(1, out) +
           fmt::format("inputs 0\noutputs 1\nop 0 SPACE_TO_DEPTH in=[0] out=[1] block_size={}\n", block);
  };
  const Row rows[] = {
      {"an image", of("1x8x10x3", "1x4x5x12", 2), 1},
      {"channels", of("1x6x6x24", "1x3x3x96", 2), 1},
      {"of 4", of("1x8x8x5", "1x2x2x80", 4), 1},
  };
  judge(rows, 0);
}

TEST(RockchipMoves, ChannelsBecomeBlocks) {
  std::vector<Row> rows;
  const struct {
    int height, width, channels, block;
    size_t operations;
  } cases[] = {
      {3, 4, 16, 2, 3},   // whole surfaces: a pass for each row of a block, and one for the rows
      {3, 4, 64, 2, 3},   // four surfaces at once
      {5, 7, 3, 2, 3},    // channels from the middle of surfaces
      {5, 7, 21, 2, 5},   // two surfaces, each by itself
      {4, 3, 32, 3, 8},   // three copies: two and two
      {2, 3, 5, 3, 8},    //
      {1, 1, 40, 2, 7},   // one pixel
      {3, 2, 1, 8, 9},    // a whole pass
      {2, 2, 1, 11, 36},  // more than a pass
      {6, 5, 20, 1, 1},   // nothing moves
  };
  for (const auto& c : cases) {
    for (const char* type : {"uint8", "int8"}) {
      rows.push_back(
          {"",
           same(0, fmt::format("1x{}x{}x{}", c.height, c.width, c.channels * c.block * c.block), type) +
               same(1, fmt::format("1x{}x{}x{}", c.height * c.block, c.width * c.block, c.channels), type) +
               fmt::format("inputs 0\noutputs 1\nop 0 DEPTH_TO_SPACE in=[0] out=[1] block_size={}\n", c.block),
           c.operations});
    }
  }
  judge(rows, 0);
}

TEST(RockchipMoves, ChannelsBecomePixels) {
  const auto of = [](const char* in, const char* out, const char* type = "uint8") {
    return same(0, in, type) + same(1, out, type) + "inputs 0\noutputs 1\nop 0 RESHAPE in=[0] out=[1]\n";
  };
  const Row rows[] = {
      {"boxes of a detector", of("1x5x6x24", "1x180x4"), 1}, {"its classes", of("1x5x6x63", "1x90x21", "int8"), 4},
      {"surfaces", of("1x4x3x96", "1x4x9x32"), 2},           {"to one channel", of("1x2x3x20", "1x2x60x1"), 3},
      {"all to channels", of("1x4x5x48", "1x960"), 2},       {"the same memory", of("1x4x5x16", "1x320", "int8"), 1},
      {"one pixel to others", of("1x96", "1x2x3x16"), 1},
  };
  judge(rows, 0);
}

// All numbers of copies, and RESIZE_BILINEAR cases that only copy.
TEST(RockchipMoves, CopiesOfPixels) {
  std::vector<Row> rows;
  std::vector<std::string> texts;
  const auto of = [](const char* kind, const char* in, int height, int width, int channels, const char* attributes) {
    return same(0, in) + numbers(1, "2", {height, width}) +
           same(2, fmt::format("1x{}x{}x{}", height, width, channels)) +
           fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2]{}\n", kind, attributes);
  };
  const auto passes = [](int times) { return times == 1 ? 0 : times / 8 + (times % 8 > 1) + times % 2; };
  for (const int times : {3, 5, 7, 8, 9, 10, 11, 16, 17})
    rows.push_back({"nearest", of("RESIZE_NEAREST_NEIGHBOR", "1x3x4x20", 3 * times, 4 * times, 20, ""),
                    static_cast<size_t>(2 * passes(times))});
  rows.push_back({"rows and columns differ", of("RESIZE_NEAREST_NEIGHBOR", "1x3x4x20", 9, 20, 20, ""), 4});
  for (const char* kind : {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}) {
    for (const char* attributes : {"", " align_corners=true", " half_pixel_centers=true"}) {
      rows.push_back({"one pixel", of(kind, "1x1x1x40", 33, 33, 40, attributes), 10});
      rows.push_back({"none", of(kind, "1x5x7x40", 5, 7, 40, attributes), 1});
      rows.push_back({"one row", of(kind, "1x1x7x40", 6, 7, 40, attributes), 1});
      rows.push_back({"one column", of(kind, "1x7x1x40", 7, 3, 40, attributes), 2});
    }
  }
  judge(rows, 0);
}

TEST(RockchipMoves, AveragesBesidePadding) {
  std::vector<Row> rows;
  const struct {
    int height, width, channels, kernel_h, kernel_w, stride;
    size_t operations;
  } cases[] = {
      {8, 8, 16, 3, 3, 1, 9}, {7, 9, 40, 3, 3, 2, 9}, {12, 13, 70, 2, 2, 1, 4}, {9, 10, 20, 2, 2, 2, 2},
      {6, 7, 3, 1, 3, 1, 3},  {2, 2, 20, 3, 3, 1, 4}, {1, 9, 20, 3, 3, 1, 3},   {5, 5, 1, 3, 3, 1, 9},
  };
  for (const auto& c : cases) {
    for (const char* type : {"uint8", "int8"}) {
      rows.push_back({"",
                      same(0, fmt::format("1x{}x{}x{}", c.height, c.width, c.channels), type) +
                          same(1,
                               fmt::format("1x{}x{}x{}", (c.height + c.stride - 1) / c.stride,
                                           (c.width + c.stride - 1) / c.stride, c.channels),
                               type) +
                          fmt::format("inputs 0\noutputs 1\nop 0 AVERAGE_POOL_2D in=[0] out=[1] filter_h={} "
                                      "filter_w={} stride_h={} stride_w={} padding=same\n",
                                      c.kernel_h, c.kernel_w, c.stride, c.stride),
                      c.operations});
    }
  }
  judge(rows, 1);
}

// Chains of images drawn from a seed: any operation that follows may read an earlier result.
class Chain {
 public:
  explicit Chain(uint32_t seed) : random_(seed), type_(seed % 2 == 0 ? "uint8" : "int8") {}

  std::string make() {
    image({range(2, 9), range(2, 9), channels()});
    image(images_[0].shape);
    inputs_ = 2;
    for (int i = range(2, 6); i > 0; --i) {
      const size_t at = random_() % images_.size();
      const int before = count_;
      add(images_[at]);
      if (count_ != before) images_[at].unread = false;
    }
    std::string text = tensors_ + "inputs 0 1\noutputs";
    for (size_t i = 0; i < images_.size(); ++i) {
      if (static_cast<int>(i) >= inputs_ && (images_[i].unread || range(0, 3) == 0))
        text += fmt::format(" {}", images_[i].id);
    }
    return text + "\n" + ops_;
  }

 private:
  using Shape = std::array<int, 3>;
  struct Image {
    int id;
    Shape shape;
    bool unread = true;
  };

  int range(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1)); }
  int channels() { return std::array{3, 16, 20, 32, 48, 64, 80}[random_() % 7]; }
  int image(const Shape& s) {
    tensors_ += same(next_, fmt::format("1x{}x{}x{}", s[0], s[1], s[2]), type_);
    images_.push_back({next_, s});
    return next_++;
  }
  int values(std::initializer_list<int32_t> list) {
    tensors_ += numbers(next_, fmt::format("{}", list.size()).c_str(), list);
    return next_++;
  }
  void op(const std::string& text) { ops_ += fmt::format("op {} {}\n", count_++, text); }

  void add(Image a) {  // most of them move other pixels
    const auto& [h, w, c] = a.shape;
    switch (range(0, 8)) {
      case 0: return join(a);
      case 7: {
        const int block = std::array{2, 2, 3, 4}[random_() % 4];
        if (c % (block * block) != 0 || h * w * block * block > 2000) return;
        const int to = image({h * block, w * block, c / block / block});
        return op(fmt::format("DEPTH_TO_SPACE in=[{}] out=[{}] block_size={}", a.id, to, block));
      }
      case 8: {
        const int times = std::array{2, 4, 5, 16}[random_() % 4];
        if (c % times != 0 || h * w * times > 2000) return;
        return op(fmt::format("RESHAPE in=[{}] out=[{}]", a.id, image({h, w * times, c / times})));
      }
      case 1: {
        const int y = range(0, h - 1), x = range(0, w - 1), first = range(0, (c - 1) / 16) * 16;
        const Shape s{range(1, h - y), range(1, w - x), range(1, c - first)};
        const int begin = values({0, y, x, first}), size = values({1, s[0], s[1], s[2]});
        return op(fmt::format("SLICE in=[{} {} {}] out=[{}]", a.id, begin, size, image(s)));
      }
      case 2: {
        const int axis = range(1, 2), all = axis == 1 ? h : w;
        if (all < 2) return;
        const int first = range(1, all - 1), sizes = values({first, all - first}), at = values({axis});
        Shape one = a.shape, other = a.shape;
        one[static_cast<size_t>(axis - 1)] = first, other[static_cast<size_t>(axis - 1)] = all - first;
        const int left = image(one), right = image(other);
        return op(fmt::format("SPLIT_V in=[{} {} {}] out=[{} {}] count=2", a.id, sizes, at, left, right));
      }
      case 3: {
        const int times = range(1, 5), more = range(1, 5);
        if (h * times * w * more > 2000) return;
        const int size = values({h * times, w * more});
        return op(
            fmt::format("RESIZE_NEAREST_NEIGHBOR in=[{} {}] out=[{}]", a.id, size, image({h * times, w * more, c})));
      }
      case 4:
        for (Image& b : images_) {
          if (b.shape != a.shape) continue;
          b.unread = false;
          const char* const kind = range(0, 1) == 0 ? "MAXIMUM" : "MINIMUM";
          const int other = b.id;
          return op(fmt::format("{} in=[{} {}] out=[{}]", kind, a.id, other, image(a.shape)));
        }
        return;
      case 5: {
        const int kernel = range(1, 4), stride = range(1, 2);
        return op(fmt::format("MAX_POOL_2D in=[{}] out=[{}] filter_h={} filter_w={} stride_h={} stride_w={}", a.id,
                              image({(h + stride - 1) / stride, (w + stride - 1) / stride, c}), kernel, kernel, stride,
                              stride));
      }
      default: {
        const int over = values({1, 2});
        return op(fmt::format("REDUCE_MAX in=[{} {}] out=[{}] keep_dims=true", a.id, over, image({1, 1, c})));
      }
    }
  }

  void join(const Image& a) {
    const int axis = range(1, 3);
    const auto at = static_cast<size_t>(axis - 1);
    for (Image& b : images_) {
      Shape s = b.shape;
      s[at] = a.shape[at];
      if (s != a.shape) continue;
      b.unread = false;
      s[at] += b.shape[at];
      const int other = b.id;
      return op(fmt::format("CONCATENATION in=[{} {}] out=[{}] axis={}", a.id, other, image(s), axis));
    }
  }

  std::mt19937 random_;
  const char* type_;
  std::string tensors_, ops_;
  std::vector<Image> images_;
  int next_ = 0, count_ = 0, inputs_ = 0;
};

TEST(RockchipMoves, Chains) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 60);
  uint32_t taken = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = Chain(seed).make();
    if (text.find("op 0") == std::string::npos) continue;
    judge(Row{"", text, 0}, 0);
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << text;
    ++taken;
  }
  if (first == 1) {
    EXPECT_GE(taken, count * 3 / 4);
  }
}

TEST(RockchipMoves, MeansOfImages) {
  std::vector<Row> rows;
  const struct {
    const char *in, *axes, *out;
    std::initializer_list<int32_t> over;
    size_t operations;
    bool beyond_filters = false;
  } cases[] = {
      {"1x7x7x40", "2", "1x1x1x40", {1, 2}, 1},
      {"1x7x9x40", "1", "1x1x9x40", {1}, 1},
      {"1x7x9x40", "1", "1x7x1x40", {2}, 2},
      {"1x14x14x40", "2", "1x1x1x40", {1, 2}, 2},
      {"1x33x33x100", "2", "1x1x1x100", {2, 1}, 2, true},
      {"1x37x11x20", "2", "1x1x1x20", {1, 2}, 2, true},
      {"1x5x49x20", "2", "1x1x1x20", {1, 2}, 2, true},
      {"1x53x61x4", "2", "1x1x1x4", {-3, -2}, 2, true},
  };
  for (const auto& c : cases) {
    for (const char* type : {"uint8", "int8"}) {
      // If the output is finer than the input, an intermediate tensor would be too coarse: one operation.
      for (const float scale : {0.02F, 0.03F, 0.001F}) {
        if (scale < kScale && c.beyond_filters) continue;
        rows.push_back({c.in,
                        same(0, c.in, type) + numbers(1, c.axes, c.over) + tensor(2, c.out, scale, 9, type) +
                            "inputs 0\noutputs 2\nop 0 MEAN in=[0 1] out=[2] keep_dims=true\n",
                        scale < kScale ? 1 : c.operations});
      }
    }
  }
  judge(rows, 1);
}

}  // namespace
}  // namespace skillet
