// Blocks, compared with known ones of Vela (hardware specification, appendix B).
#include "npus/ethosu/compiler/tile.h"

#include <gtest/gtest.h>

namespace skillet::npus::ethosu {
namespace {

struct Size {
  uint32_t height, width, depth;
};
struct Case {
  const char *name, *chip;
  Unit unit;
  Size input, output;
  uint32_t kernel, stride;
  bool has_table;
  Size block, read;
  uint32_t input_end, input2_start, sums_start;  // input2_start 0: any
};
constexpr const char *kLarge = "ethos-u65-256", *kMiddle = "ethos-u55-128", *kSmall = "ethos-u55-32";
const Case kCases[] = {
    {"first", kLarge, Unit::conv, {224, 224, 3}, {112, 112, 32}, 3, 2, false, {6, 16, 32}, {14, 34, 8}, 10, 0, 14},
    {"first", kMiddle, Unit::conv, {224, 224, 3}, {112, 112, 32}, 3, 2, false, {6, 8, 32}, {13, 18, 8}, 6, 0, 6},
    {"first", kSmall, Unit::conv, {224, 224, 3}, {112, 112, 32}, 3, 2, false, {8, 8, 16}, {17, 17, 8}, 8, 0, 8},
    {"depthwise",
     kLarge,
     Unit::depthwise,
     {112, 112, 32},
     {112, 112, 32},
     3,
     1,
     false,
     {14, 14, 16},
     {16, 16, 16},
     10,
     0,
     14},
    {"depthwise",
     kMiddle,
     Unit::depthwise,
     {112, 112, 32},
     {112, 112, 32},
     3,
     1,
     false,
     {7, 12, 16},
     {9, 14, 16},
     6,
     0,
     6},
    {"depthwise",
     kSmall,
     Unit::depthwise,
     {112, 112, 32},
     {112, 112, 32},
     3,
     1,
     false,
     {8, 8, 16},
     {10, 10, 16},
     6,
     0,
     8},
    {"pointwise", kLarge, Unit::conv, {112, 112, 32}, {112, 112, 64}, 1, 1, false, {4, 16, 64}, {4, 16, 32}, 10, 0, 14},
    {"pointwise", kMiddle, Unit::conv, {112, 112, 32}, {112, 112, 64}, 1, 1, false, {4, 16, 32}, {4, 16, 32}, 6, 0, 6},
    {"deep", kLarge, Unit::conv, {7, 7, 1024}, {7, 7, 1024}, 1, 1, false, {8, 8, 64}, {8, 8, 32}, 10, 0, 14},
    {"deep", kMiddle, Unit::conv, {7, 7, 1024}, {7, 7, 1024}, 1, 1, false, {7, 8, 32}, {7, 8, 32}, 6, 0, 6},
    {"average",
     kLarge,
     Unit::average_pool,
     {7, 7, 1024},
     {1, 1, 1024},
     7,
     1,
     false,
     {2, 2, 128},
     {8, 8, 128},
     18,
     0,
     30},
    {"average",
     kMiddle,
     Unit::average_pool,
     {7, 7, 1024},
     {1, 1, 1024},
     7,
     1,
     false,
     {1, 2, 96},
     {7, 8, 96},
     14,
     0,
     14},
    {"average", kSmall, Unit::average_pool, {7, 7, 1024}, {1, 1, 1024}, 7, 1, false, {1, 1, 96}, {7, 7, 96}, 12, 0, 12},
    {"dense", kLarge, Unit::conv, {1, 1, 1024}, {1, 1, 1001}, 1, 1, false, {2, 2, 128}, {2, 2, 32}, 10, 0, 30},
    {"dense", kMiddle, Unit::conv, {1, 1, 1024}, {1, 1, 1001}, 1, 1, false, {1, 2, 128}, {1, 2, 32}, 6, 0, 14},
    {"dense", kSmall, Unit::conv, {1, 1, 1024}, {1, 1, 1001}, 1, 1, false, {1, 1, 128}, {1, 1, 32}, 4, 0, 12},
    {"sum", kLarge, Unit::add, {56, 56, 24}, {56, 56, 24}, 1, 1, false, {16, 32, 16}, {16, 32, 16}, 46, 18, 46},
    {"sum", kMiddle, Unit::add, {56, 56, 24}, {56, 56, 24}, 1, 1, false, {8, 32, 16}, {8, 32, 16}, 22, 10, 22},
    {"sum", kSmall, Unit::add, {56, 56, 24}, {56, 56, 24}, 1, 1, false, {4, 48, 16}, {4, 48, 16}, 16, 8, 16},
    // Larger than Vela's block at the same cost: the table uses the last two banks.
    {"table", kSmall, Unit::average_pool, {28, 28, 64}, {28, 28, 64}, 1, 1, true, {9, 5, 16}, {9, 5, 16}, 4, 0, 6},
};

TEST(EthosuTile, IsTheOneOfVela) {
  for (const Case& c : kCases) {
    Operation operation{.unit = c.unit};
    operation.input.height = c.input.height, operation.input.width = c.input.width,
    operation.input.depth = c.input.depth;
    operation.output.height = c.output.height, operation.output.width = c.output.width;
    operation.output.depth = c.output.depth;
    operation.window = {.kernel_h = c.kernel, .kernel_w = c.kernel, .stride_h = c.stride, .stride_w = c.stride};
    if (c.has_table) operation.table.emplace();
    const auto tile = tile_of(*hw::find_chip(c.chip), operation);
    ASSERT_TRUE(tile) << c.name << " " << c.chip;
    const auto text = [](uint32_t h, uint32_t w, uint32_t d) { return fmt::format("{}x{}x{}", h, w, d); };
    EXPECT_EQ(text(tile->height, tile->width, tile->depth), text(c.block.height, c.block.width, c.block.depth))
        << c.name << " " << c.chip;
    EXPECT_EQ(text(tile->input_height, tile->input_width, tile->input_depth),
              text(c.read.height, c.read.width, c.read.depth))
        << c.name << " " << c.chip;
    EXPECT_EQ(tile->input_end, c.input_end) << c.name << " " << c.chip;
    EXPECT_EQ(tile->sums_start, c.sums_start) << c.name << " " << c.chip;
    if (c.input2_start != 0) {
      EXPECT_EQ(tile->input2_start, c.input2_start) << c.name << " " << c.chip;
    }
  }
}

// Rows and columns: two pixels of each, and one before the first.
TEST(EthosuTile, AnUpscaledImageIsReadHalfAsFar) {
  for (const auto& [upscale, size] :
       {std::pair{hw::Upscale::none, 10U}, {hw::Upscale::zeros, 5U}, {hw::Upscale::nearest, 6U}}) {
    Operation operation{.unit = Unit::conv};
    operation.input.height = operation.input.width = size, operation.input.depth = 16;
    operation.output.height = operation.output.width = 8, operation.output.depth = 16;
    operation.window = {.kernel_h = 3, .kernel_w = 3, .upscale = upscale};
    const auto tile = tile_of(*hw::find_chip(kSmall), operation);
    ASSERT_TRUE(tile);
    EXPECT_EQ(std::pair(tile->height, tile->width), std::pair(8U, 8U));
    EXPECT_EQ(std::pair(tile->input_height, tile->input_width), std::pair(size, size));
  }
}

}  // namespace
}  // namespace skillet::npus::ethosu
