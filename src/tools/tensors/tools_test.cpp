// Table-driven tests of pictures, labels, scores and input files. All files are created here.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/testing/own_folder.h"
#include "tools/run/difference.h"
#include "tools/run/scores.h"
#include "tools/show/text_table.h"
#include "tools/tensors/exif.h"
#include "tools/tensors/picture.h"
#include "tools/tensors/run_inputs.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

ir::Tensor tensor(ir::DType dtype, ir::Shape shape, float scale = 0, int zero_point = 0) {
  ir::Tensor out{.name = "t", .dtype = dtype, .shape = std::move(shape)};
  if (scale > 0) out.quant = {.scales = {scale}, .zero_points = {zero_point}, .axis = 0};
  return out;
}

Bytes npy(std::string_view header, Bytes data) {
  Bytes out = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<uint8_t>(header.size()), 0};
  for (const char c : header) out.push_back(static_cast<uint8_t>(c));
  for (const uint8_t byte : data) out.push_back(byte);
  return out;
}

// Refused by its header.
TEST(Picture, HasAtMostSoManyPixels) {
  Bytes file(54);
  store_le<uint16_t>(file.data(), 0x4D42);
  store_le<uint32_t>(file.data() + 10, 54);
  store_le<uint32_t>(file.data() + 14, 40);
  store_le<uint32_t>(file.data() + 18, 20'000);
  store_le<uint32_t>(file.data() + 22, 10'000);
  store_le<uint16_t>(file.data() + 26, 1);
  store_le<uint16_t>(file.data() + 28, 24);
  const std::string path = own_path("large.bmp");
  ASSERT_TRUE(write_file(path, file).ok());
  const auto picture = load_picture(path, 3);
  ASSERT_FALSE(picture.ok());
  EXPECT_NE(picture.error().message.find("a picture of 20000 x 10000"), std::string::npos) << picture.error().message;
  std::remove(path.c_str());
}

TEST(Picture, ShrinksByInterpolatingAtPixelCentres) {
  const Picture wide{.width_px = 4, .height_px = 2, .channels = 1, .pixels = {0, 100, 200, 40, 0, 100, 200, 40}};
  EXPECT_EQ(resize(wide, 2, 1).pixels, (Bytes{50, 120}));
  EXPECT_EQ(resize(wide, 4, 2).pixels, wide.pixels);
}

TEST(Picture, GrowsByRepeatingEdges) {
  const Picture two{.width_px = 2, .height_px = 1, .channels = 1, .pixels = {0, 100}};
  EXPECT_EQ(resize(two, 4, 1).pixels, (Bytes{0, 25, 75, 100}));
}

// Small pictures grow by an integer factor, large ones shrink to the largest side, others stay.
TEST(Picture, FitsBetweenTwoSizes) {
  const auto fitted = [](int width, int height) {
    const Picture given{
        .width_px = width, .height_px = height, .channels = 1, .pixels = Bytes(static_cast<size_t>(width * height))};
    const Picture got = fit(given, 40, 80);
    return std::pair(got.width_px, got.height_px);
  };
  EXPECT_EQ(fitted(80, 30), std::pair(80, 30));
  EXPECT_EQ(fitted(81, 30), std::pair(80, 30));
  EXPECT_EQ(fitted(100, 160), std::pair(50, 80));
  EXPECT_EQ(fitted(400, 1), std::pair(80, 1));
  EXPECT_EQ(fitted(21, 5), std::pair(21, 5));
  EXPECT_EQ(fitted(20, 5), std::pair(40, 10));
  EXPECT_EQ(fitted(3, 13), std::pair(9, 39));
}

// For display, frames too.
TEST(Picture, IsShownWithAtMostSoManyPixels) {
  for (const auto& [width, shown] :
       {std::pair(5, 40), {39, 39}, {1279, 1279}, {1280, 1280}, {1281, 1280}, {2000, 1280}}) {
    InputSet set;
    set.frame =
        Picture{.width_px = width, .height_px = 2, .channels = 1, .pixels = Bytes(static_cast<size_t>(width) * 2)};
    const auto picture = picture_of(set, 40);
    ASSERT_TRUE(picture.ok());
    EXPECT_EQ(picture->width_px, shown);
    EXPECT_EQ(picture->channels, 3);
  }
}

TEST(Picture, KeepsChannelsApart) {
  const Picture rgb{.width_px = 2, .height_px = 1, .channels = 3, .pixels = {0, 10, 20, 100, 30, 40}};
  EXPECT_EQ(resize(rgb, 1, 1).pixels, (Bytes{50, 20, 30}));
}

TEST(Picture, MapsToTheInputsType) {
  const Picture grey{.width_px = 2, .height_px = 1, .channels = 1, .pixels = {0, 255}};
  EXPECT_EQ(*to_tensor(grey, tensor(ir::DType::uint8, {1, 1, 2, 1})), (Bytes{0, 255}));
  EXPECT_EQ(*to_tensor(grey, tensor(ir::DType::int8, {1, 1, 2, 1})), (Bytes{0x80, 0x7F}));
  const Bytes real = *to_tensor(grey, tensor(ir::DType::float32, {1, 1, 2, 1}));
  EXPECT_EQ(load_le<float>(real.data()), -1.0F);
  EXPECT_EQ(load_le<float>(real.data() + 4), 1.0F);
  for (const auto& [range, last] : {std::pair{"0..1", 1.0F}, {"0..255", 255.0F}}) {
    const Bytes other = *to_tensor(grey, tensor(ir::DType::float32, {1, 1, 2, 1}), range);
    EXPECT_EQ(load_le<float>(other.data()), 0.0F) << range;
    EXPECT_EQ(load_le<float>(other.data() + 4), last) << range;
  }
}

TEST(Picture, RefusesInputsThatAreNoPictures) {
  for (const ir::Shape& shape : {ir::Shape{1, 10}, ir::Shape{2, 4, 4, 3}, ir::Shape{1, 4, 4, 2}, ir::Shape{1, 0, 4, 1}})
    EXPECT_FALSE(check_image_input(tensor(ir::DType::uint8, shape)).ok()) << shape.to_string();
  EXPECT_FALSE(check_image_input(tensor(ir::DType::int32, {1, 4, 4, 3})).ok());
  EXPECT_TRUE(check_image_input(tensor(ir::DType::int8, {1, 4, 4, 3})).ok());
}

TEST(Picture, ReadsBmpAndNamesAFileThatIsNone) {
  const std::string path = own_path("two.bmp");
  Bytes bmp(54 + 8);  // 2 x 1 pixels, 24 bits: blue, green, red; one row padded to 8 bytes
  const uint8_t header[] = {'B', 'M', 62, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0,  40,
                            0,   0,   0,  2, 0, 0, 0, 1, 0, 0, 0,  1, 0, 24, 0};
  std::copy(std::begin(header), std::end(header), bmp.begin());
  const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
  std::copy(std::begin(pixels), std::end(pixels), bmp.begin() + 54);
  ASSERT_TRUE(write_file(path, bmp).ok());
  const auto picture = load_picture(path, 3);
  ASSERT_TRUE(picture.ok()) << picture.error().message;
  EXPECT_EQ(picture->pixels, (Bytes{3, 2, 1, 6, 5, 4}));
  for (const size_t bytes : {size_t{20}, size_t{53}, size_t{54}, size_t{55}, bmp.size() - 1}) {
    ASSERT_TRUE(write_file(path, std::span(bmp).first(bytes)).ok());
    const auto broken = load_picture(path, 3);
    ASSERT_FALSE(broken.ok()) << bytes;
    EXPECT_NE(broken.error().message.find(path), std::string::npos);
  }
}

// A BMP file of 3 x 2 grey pixels, without palette.
Bytes bmp_file(uint32_t bits, uint32_t compression, int32_t height) {
  Bytes out(54);
  out[0] = 'B', out[1] = 'M';
  const uint32_t row_bytes = (3 * bits + 31) / 32 * 4;
  for (const auto& [at, word] : {std::pair<size_t, uint32_t>{10, 54}, {14, 40}, {18, 3}, {30, compression}})
    store_le(out.data() + at, word);
  store_le(out.data() + 22, height);
  store_le(out.data() + 26, bits << 16 | 1U);
  if (compression == 3) {  // the masks of red, green and blue
    store_le(out.data() + 10, uint32_t{66});
    out.resize(66);
    for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) store_le(out.data() + 54 + 4 * i, 0xFF0000U >> (8 * i));
  }
  for (uint32_t row = 0; row < 2; ++row) out.insert(out.end(), row_bytes, static_cast<uint8_t>(50 + 100 * row));
  return out;
}

TEST(Picture, ReadsEveryFormOfBmpAndKnowsWhereItEnds) {
  struct Form {
    uint32_t bits, compression;
    int32_t height;  // below 0: the top row is first
  };
  const std::string path = own_path("forms.bmp");
  for (const Form& form : {Form{24, 0, 2}, Form{24, 0, -2}, Form{32, 0, 2}, Form{32, 3, 2}, Form{32, 3, -2}}) {
    SCOPED_TRACE(fmt::format("{} bits, compression {}, height {}", form.bits, form.compression, form.height));
    const Bytes file = bmp_file(form.bits, form.compression, form.height);
    ASSERT_TRUE(write_file(path, file).ok());
    const auto whole = load_picture(path, 3);
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    Bytes rows(9, form.height < 0 ? 50 : 150);
    rows.insert(rows.end(), 9, form.height < 0 ? 150 : 50);
    EXPECT_EQ(whole->pixels, rows);
    for (const size_t missing : {size_t{1}, file.size() - 70}) {
      ASSERT_TRUE(write_file(path, std::span(file).first(file.size() - missing)).ok());
      const auto cut = load_picture(path, 3);
      ASSERT_FALSE(cut.ok());
      EXPECT_EQ(cut.error().message, path + ": the picture is cut off");
    }
  }
  for (const size_t size_at : {18, 22}) {  // its width, its height
    for (const int32_t size : {0, 1 << 30, -(1 << 30)}) {
      Bytes file = bmp_file(24, 0, 2);
      store_le(file.data() + size_at, size);
      ASSERT_TRUE(write_file(path, file).ok());
      EXPECT_FALSE(load_picture(path, 3).ok()) << size_at << " " << size;
    }
  }
  // Run-length encoded: the size is not known in advance.
  ASSERT_TRUE(write_file(path, bmp_file(8, 1, 2)).ok());
  const auto runs = load_picture(path, 3);
  ASSERT_FALSE(runs.ok());
  EXPECT_NE(runs.error().message.find("not a BMP, PNG or JPEG picture that we can read"), std::string::npos)
      << runs.error().message;
}

// A JPEG file up to its Exif segment, with one entry: the orientation, a SHORT or a LONG.
Bytes jpeg_turned(bool big_endian, uint8_t orientation, bool is_long = false) {
  Bytes out = {0xFF, 0xD8, 0xFF, 0xE0, 0,   4,   'J', 'F',  // a segment before it
               0xFF, 0xE1, 0,    34,   'E', 'x', 'i', 'f', 0, 0};
  const Bytes little = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0};
  const Bytes big = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
  out.insert(out.end(), big_endian ? big.begin() : little.begin(), big_endian ? big.end() : little.end());
  if (!is_long) return out;
  const size_t entry = out.size() - 16;
  out[entry + (big_endian ? 3 : 2)] = 4;
  if (big_endian) std::swap(out[entry + 9], out[entry + 11]);
  return out;
}

TEST(Picture, ExifOrientationIsRead) {
  for (const bool big_endian : {false, true}) {
    for (uint8_t orientation = 1; orientation <= 8; ++orientation) {
      for (const bool is_long : {false, true})
        EXPECT_EQ(exif_orientation(jpeg_turned(big_endian, orientation, is_long)), orientation)
            << big_endian << is_long;
    }
    EXPECT_EQ(exif_orientation(jpeg_turned(big_endian, 0)), 1) << "no such orientation";
    EXPECT_EQ(exif_orientation(jpeg_turned(big_endian, 9)), 1);
    const Bytes whole = jpeg_turned(big_endian, 6);
    for (size_t size = 0; size < whole.size() - 8; ++size)
      EXPECT_EQ(exif_orientation(std::span(whole).first(size)), 1) << "cut after " << size;
  }
  EXPECT_EQ(exif_orientation(Bytes{'B', 'M', 0, 0}), 1);
}

// A PNG file up to its end, with chunks before eXIf.
Bytes png_turned(uint8_t orientation) {
  const Bytes jpeg = jpeg_turned(false, orientation);
  const Bytes exif(jpeg.end() - 26, jpeg.end());
  Bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 3, 't', 'E', 'X', 't', 'a', 0, 'b', 1, 2, 3, 4};
  out.insert(out.end(), {0, 0, 0, static_cast<uint8_t>(exif.size()), 'e', 'X', 'I', 'f'});
  out.insert(out.end(), exif.begin(), exif.end());
  out.insert(out.end(), {1, 2, 3, 4});
  return out;
}

TEST(Picture, ExifOrientationOfPngIsRead) {
  for (uint8_t orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(exif_orientation(png_turned(orientation)), orientation);
  const Bytes whole = png_turned(6);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(exif_orientation(std::span(whole).first(size)), 1) << "cut after " << size;
}

TEST(Picture, IsTurnedUpright) {
  // 3 x 2:   1 2 3
  //          4 5 6
  const Picture given{.width_px = 3, .height_px = 2, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}};
  struct Case {
    int orientation, width_px;
    Bytes pixels;
  };
  const Case kCases[] = {{1, 3, {1, 2, 3, 4, 5, 6}}, {2, 3, {3, 2, 1, 6, 5, 4}}, {3, 3, {6, 5, 4, 3, 2, 1}},
                         {4, 3, {4, 5, 6, 1, 2, 3}}, {5, 2, {1, 4, 2, 5, 3, 6}}, {6, 2, {4, 1, 5, 2, 6, 3}},
                         {7, 2, {6, 3, 5, 2, 4, 1}}, {8, 2, {3, 6, 2, 5, 1, 4}}};
  for (const Case& c : kCases) {
    const Picture turned = upright(given, c.orientation);
    EXPECT_EQ(turned.width_px, c.width_px) << c.orientation;
    EXPECT_EQ(turned.pixels, c.pixels) << c.orientation;
  }
  const Picture rgb{.width_px = 2, .height_px = 1, .channels = 3, .pixels = {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(upright(rgb, 6).pixels, rgb.pixels) << "a column";
  EXPECT_EQ(upright(rgb, 6).height_px, 2);
}

TEST(Picture, DrawsDarkToBright) {
  const Picture picture{.width_px = 2, .height_px = 2, .channels = 1, .pixels = {0, 255, 0, 255}};
  EXPECT_EQ(draw(picture, 40), std::vector<std::string>{" @"});
}

TEST(Labels, AcceptsBothForms) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(*parse_labels("background\ntench, Tinca\n"), (Labels{"background", "tench, Tinca"}));
  EXPECT_EQ(*parse_labels("0 person\n2:  car\r\n"), (Labels{"person", "", "car"}));
  EXPECT_EQ(*parse_labels("0 person\n\n1 bike\n"), (Labels{"person", "bike"}));
  EXPECT_EQ(*parse_labels("0\n1\n2\n"), (Labels{"0", "1", "2"}));          // the label is the number
  EXPECT_EQ(*parse_labels("3 dogs\ncats\n"), (Labels{"3 dogs", "cats"}));  // not every line has an index
  EXPECT_EQ(*parse_labels("99999999999999999999 x\n"), (Labels{"99999999999999999999 x"}));
}

TEST(Labels, AByteOrderMarkIsNoLetter) {
  EXPECT_EQ(*parse_labels("\xEF\xBB\xBF"
                          "0 cat\n1 dog\n"),
            (std::vector<std::string>{"cat", "dog"}));
}

TEST(Labels, WhereverTheyWereWritten) {
  const std::vector<std::string> wanted = {"cat", "", "dog"};
  for (const char* text : {"cat\n\ndog\n", "cat\r\n\r\ndog", "cat\r\rdog\r", "cat \t\r\r\n\r\ndog\n\n"})
    EXPECT_EQ(*parse_labels(text), wanted) << text;
  for (const std::string_view text : {std::string_view("\xFF\xFE"
                                                       "c\0",
                                                       4),
                                      std::string_view("c\0a\0", 4)}) {
    const auto refused = parse_labels(text);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message, "is not UTF-8 text (a file in UTF-16?)");
  }
  const auto twice = parse_labels("0 cat\n1 dog\n0 cow\n1 pig\n");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message, "line 3: class 0 is 'cat' and 'cow'");
}

TEST(Scores, TopClassesAreOrderedAndDequantized) {
  const ir::Tensor scores = tensor(ir::DType::int8, {1, 4}, 0.5F, -1);
  const Bytes bytes = {0x80, 5, 0xFF, 5};  // -128, 5, -1, 5
  EXPECT_EQ(top_classes(scores, bytes, 3), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(top_classes(scores, bytes, 9).size(), 4U);
  EXPECT_EQ(real_value(scores, bytes, 1), 3.0);
  EXPECT_EQ(print_raw(scores, bytes, 0), "-128 of -128..127");
  EXPECT_EQ(print_raw(tensor(ir::DType::uint8, {1, 2}, 1.0F), Bytes{224, 0}, 0), "224/255");
}

TEST(Scores, HalvesAreNumbersAndWhatIsNoNumberComesLast) {
  const ir::Tensor halves = tensor(ir::DType::float16, {1, 6});
  // 1, -2, NaN, infinity, the smallest positive number, 65504
  const Bytes bytes = {0, 0x3C, 0, 0xC0, 1, 0x7E, 0, 0x7C, 1, 0, 0xFF, 0x7B};
  ASSERT_TRUE(has_numbers(halves.dtype));
  EXPECT_EQ(raw_value(halves, bytes, 0), 1);
  EXPECT_EQ(raw_value(halves, bytes, 1), -2);
  EXPECT_EQ(raw_value(halves, bytes, 4), std::ldexp(1, -24));
  EXPECT_EQ(raw_value(halves, bytes, 5), 65504);
  EXPECT_EQ(top_classes(halves, bytes, 6), (std::vector<int64_t>{3, 5, 0, 4, 1, 2}));
  EXPECT_EQ(difference_of(halves, bytes, bytes).largest, 0);
  Bytes other = bytes;
  other[5] = 0;  // a number instead of NaN
  EXPECT_TRUE(std::isnan(difference_of(halves, bytes, other).largest));
}

TEST(Scores, OnlyOneVectorIsScores) {
  EXPECT_TRUE(is_scores(tensor(ir::DType::uint8, {1, 1, 1, 10})));
  EXPECT_FALSE(is_scores(tensor(ir::DType::uint8, {1, 2, 2, 10})));
  EXPECT_FALSE(is_scores(tensor(ir::DType::uint8, {1, 1})));
}

TEST(Difference, RespectsTheSignAndTheUnit) {
  const ir::Tensor bytes = tensor(ir::DType::int8, {4}), steps = tensor(ir::DType::uint8, {4}, 0.5F);
  EXPECT_EQ(difference_of(bytes, Bytes{0xFF, 3, 0, 0}, Bytes{1, 3, 0, 0}).largest, 2);
  EXPECT_EQ(print(difference_of(bytes, Bytes{0xFF, 3, 0, 0}, Bytes{1, 3, 0, 0})), "25.00 % of elements");
  Difference found = difference_of(steps, Bytes{0xFF, 3, 1, 0}, Bytes{1, 3, 0, 0});
  EXPECT_EQ(print(found), "254 LSB, mean 63.8, 25.00 % beyond 1");
  found.add(difference_of(steps, Bytes{0, 0, 0, 0}, Bytes{1, 0, 0, 0}));
  EXPECT_EQ(print(found), "254 LSB, mean 32, 12.50 % beyond 1");
  const SameClass same = same_class(steps, Bytes{0, 3, 7, 1}, Bytes{0, 6, 9, 1});
  EXPECT_EQ(print(same, Unit::step), "the same best class, 3 LSB ahead of the second");
  EXPECT_FALSE(same_class(steps, Bytes{0, 8, 7, 1}, Bytes{0, 6, 9, 1}).is_same);
}

TEST(Difference, OfFloatsIsInStepsOfWhatTheyWere) {
  ir::Graph graph;
  const ir::TensorId bytes = graph.add_tensor(tensor(ir::DType::uint8, {3}, 0.5F));
  graph.outputs = {graph.add_tensor(tensor(ir::DType::float32, {3}))};
  graph.ops.push_back({.kind = ir::OpKind::dequantize, .inputs = {bytes}, .outputs = graph.outputs});
  Bytes got(12), wanted(12);
  store_le(got.data(), 0.5F), store_le(got.data() + 4, 1.0F);
  EXPECT_EQ(print(difference_of(graph, 0, got, wanted)), "1, mean 0.5, 33.33 % beyond 1 step");
  const ir::TensorId moved = graph.add_tensor(tensor(ir::DType::float32, {1, 3}));
  graph.ops.push_back({.kind = ir::OpKind::reshape, .inputs = graph.outputs, .outputs = {moved}});
  graph.outputs = {moved};
  EXPECT_EQ(print(difference_of(graph, 0, got, wanted)), "1, mean 0.5, 33.33 % beyond 1 step");
  graph.ops.clear();
  EXPECT_EQ(print(difference_of(graph, 0, got, wanted)), "1, mean 0.5");
}

TEST(Difference, NoiseIsAStepOnOneInAHundred) {
  ir::Graph graph;
  graph.inputs = {graph.add_tensor(tensor(ir::DType::uint8, {1, 1000})),
                  graph.add_tensor(tensor(ir::DType::int32, {2}))};
  const std::vector<Bytes> inputs = {Bytes(1000, 0xFF), Bytes(8)};
  const auto noisy = with_noise(graph, inputs);
  ASSERT_TRUE(noisy);
  const Difference moved = difference_of(graph.tensor(graph.inputs[0]), (*noisy)[0], inputs[0]);
  EXPECT_EQ(moved.largest, 1);  // a step beyond the type's range goes the other way
  EXPECT_GT(moved.differing, 8);
  EXPECT_LE(moved.differing, 10);
  EXPECT_EQ((*noisy)[1], inputs[1]);  // integers without a scale have no steps
  graph.inputs = {graph.inputs[1]};
  EXPECT_FALSE(with_noise(graph, std::vector<Bytes>{Bytes(8)}));
}

TEST(TensorFile, NpyMustMatchTheInput) {
  const ir::Tensor input = tensor(ir::DType::uint8, {1, 2});
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }";
  EXPECT_EQ(*parse_npy(npy(good, {7, 8}), input), (Bytes{7, 8}));
  // Without the batch of one.
  EXPECT_EQ(*parse_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", {7, 8}), input), (Bytes{7, 8}));
  struct Case {
    std::string header;
    Bytes data;
    std::string message;
  };
  const Case cases[] = {
      {good, {7}, "holds 1 bytes"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1)}", {7, 8}, "array is 2x1"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 2)}", {7}, "holds 1 bytes"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}", {7, 8}, "without 'shape'"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (2", {7, 8}, "without 'shape'"},
      {"{'descr': '<f4', 'fortran_order': False}", {7, 8}, "'<f4'"},
      {"{'descr': '|u1', 'fortran_order': True}", {7, 8}, "Fortran"},
      {"{'fortran_order': False}", {7, 8}, "without 'descr'"},
      {"{'descr': [('|u1', '|u1')], 'fortran_order': False, 'shape': (2,)}", {7, 8}, "elements with fields"},
      {"{'descr': '|u1', 'shape': (2,)}", {7, 8}, "without 'fortran_order'"},
      {"{'descr", {7, 8}, "without 'descr'"}};
  for (const Case& c : cases) {
    const auto result = parse_npy(npy(c.header, c.data), input);
    ASSERT_FALSE(result.ok()) << c.header;
    EXPECT_NE(result.error().message.find(c.message), std::string::npos) << result.error().message;
  }
  EXPECT_EQ(*parse_npy(npy("{'descr':'|u1','fortran_order':False,'shape':(2,)}", {7, 8}), input), (Bytes{7, 8}));
  for (const auto& version : {std::pair<uint8_t, uint8_t>{0, 0}, {4, 0}, {255, 0}, {1, 1}}) {
    Bytes other = npy(good, {7, 8});
    std::tie(other[6], other[7]) = version;
    const auto refused = parse_npy(other, input);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("version"), std::string::npos) << refused.error().message;
  }
  Bytes cut = npy(good, {});
  cut.resize(20);
  EXPECT_FALSE(parse_npy(cut, input).ok());
  EXPECT_FALSE(parse_npy(Bytes{1, 2, 3}, input).ok());
}

TEST(TensorFile, RandomStreamIsSplitmix64) {
  // First draws of splitmix64 with seed 0, from its published test vector: 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4.
  RandomStream stream(0);
  EXPECT_EQ(*stream.fill(tensor(ir::DType::uint8, {1})), (Bytes{0xAF}));
  EXPECT_EQ(*stream.fill(tensor(ir::DType::int8, {1})), (Bytes{0xF4}));  // the stream goes on over inputs
  EXPECT_FALSE(stream.fill(tensor(ir::DType::string, {1})).ok());
}

TEST(TextTable, AlignsNumbersToTheRight) {
  TextTable table({"name", "count"});
  table.add({"a", "1,000"});
  table.add({"long", "7"});
  EXPECT_EQ(table.print(), "  name  count\n  a     1,000\n  long      7\n");
}

// Words of a column begin below its title, left-aligned.
TEST(TextTable, WordsStandToTheLeft) {
  TextTable table({"op", "time", "where", "rest"});
  table.add({"1", "12", "npu", ""});
  table.add({"22", "-", "7", "5 ms"});
  EXPECT_EQ(table.print(),
            "  op  time  where  rest\n"
            "  1     12  npu\n"
            "  22     -  7      5 ms\n");
}

// Also rows whose last column is empty or begins too far right.
TEST(TextTable, LinesAreBroken) {
  std::string words;
  for (int i = 0; i < 30; ++i) words += "word ";
  for (const size_t width : {size_t{10}, size_t{30}, size_t{55}}) {
    TextTable table({"name", "place", "what"});
    table.add({std::string(50, 'n'), std::string(width, 'p'), ""});
    table.add({std::string(40, 'n'), std::string(width, 'p'), words});
    std::string text = table.print_wrapped();
    EXPECT_EQ(std::ranges::count(text, 'w'), 31) << text;
    for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) EXPECT_LE(end, kLineColumns);
  }
}

// At and around each change of the form.
TEST(TextTable, NumbersAreShort) {
  for (const auto& [ms, text] : {std::pair<double, std::string_view>{0, "0 ms"},
                                 {0.0123, "0.012 ms"},
                                 {1.25, "1.2 ms"},
                                 {9.94, "9.9 ms"},
                                 {10, "10 ms"},
                                 {10.9, "11 ms"},
                                 {999.4, "999 ms"},
                                 {1000, "1.00 s"},
                                 {1234.9, "1.23 s"},
                                 {61000, "61.00 s"}})
    EXPECT_EQ(print_ms(ms), text) << ms;
  for (const auto& [count, text] : {std::pair<uint64_t, std::string_view>{0, "0"},
                                    {123, "123"},
                                    {999, "999"},
                                    {1000, "1,000"},
                                    {12345, "12,345"},
                                    {1234567, "1,234,567"},
                                    {1'000'000'000, "1,000,000,000"}})
    EXPECT_EQ(print_count(count), text) << count;
  for (const auto& [bytes, text] : {std::pair<uint64_t, std::string_view>{0, "0 B"},
                                    {1023, "1023 B"},
                                    {1024, "1.0 KiB"},
                                    {1536, "1.5 KiB"},
                                    {1024 * 1024 - 1, "1024.0 KiB"},
                                    {1024 * 1024, "1.0 MiB"},
                                    {uint64_t{5} << 30, "5120.0 MiB"}})
    EXPECT_EQ(print_bytes(bytes), text) << bytes;
}

}  // namespace
}  // namespace skillet::tools
