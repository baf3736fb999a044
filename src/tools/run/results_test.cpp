// Writes outputs to files and reads them back, also archives; differences from expected outputs.
#include "tools/run/results.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/testing/own_folder.h"
#include "tools/run/difference.h"
#include "tools/tensors/tensor_file.h"
#include "tools/tensors/zip_file.h"

namespace skillet::tools {
namespace {

ir::Graph graph(const std::vector<std::string>& outputs, ir::DType dtype = ir::DType::uint8) {
  ir::Graph out;
  for (const std::string& name : outputs)
    out.outputs.push_back(out.add_tensor({.name = name, .dtype = dtype, .shape = {1, 2}}));
  return out;
}

TEST(Zip, HoldsWhatWasPutIn) {
  const std::vector<ZipEntry> entries = {{"a.npy", {1, 2, 3}}, {"b/c.npy", {}}};
  const auto file = zip_of(entries);
  ASSERT_TRUE(file.ok());
  const auto members = zip_members(*file);
  ASSERT_TRUE(members.ok()) << members.error().message;
  ASSERT_EQ(members->size(), 2U);
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ((*members)[i].name, entries[i].name);
    const auto bytes = unpack((*members)[i], 3);
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    EXPECT_EQ(*bytes, entries[i].bytes);
  }
  EXPECT_FALSE(unpack((*members)[0], 2).ok()) << "larger than is wanted";
}

// A changed byte or a truncated end only causes an error or other names.
TEST(Zip, DamageIsAnErrorOrHarmless) {
  const std::vector<ZipEntry> entries = {{"a", {1, 2, 3}}};
  const Bytes whole = *zip_of(entries);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(zip_members(std::span(whole).first(size)).ok()) << size;
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const uint8_t flip : {0x01, 0x08, 0xFF}) {
      Bytes changed = whole;
      changed[at] ^= flip;
      const auto members = zip_members(changed);
      bool is_fine = members.ok();
      for (const ZipMember& member : members.ok() ? *members : std::vector<ZipMember>{}) {
        const auto bytes = unpack(member, 1000);
        is_fine = is_fine && bytes.ok();
        EXPECT_TRUE(!bytes.ok() || *bytes == entries[0].bytes) << at;
      }
      refused += is_fine ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 60U);
}

TEST(Zip, UnpacksNoMoreThanIsWanted) {
  Bytes packed = {0xED, 0xC1, 0x01, 0x01, 0, 0, 0, 0x80, 0x90, 0xFE, 0xAF, 0xEE, 0x08, 0x0A};  // by zlib
  packed.resize(77);
  packed.push_back(0x6A);
  const Bytes zeros(65536);
  ZipMember member{.name = "bomb", .packed = packed, .is_deflated = true, .size_bytes = 0, .crc = crc32(zeros)};
  for (const uint32_t says : {0U, 1U, 100U, 65535U, 65537U}) {
    member.size_bytes = says;
    EXPECT_FALSE(unpack(member, 100'000).ok()) << says;
  }
  member.size_bytes = 65536;
  EXPECT_FALSE(unpack(member, 65535).ok());
  const auto bytes = unpack(member, 65536);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(*bytes, zeros);
  member.crc ^= 1;
  EXPECT_FALSE(unpack(member, 65536).ok()) << "wrong checksum";
}

TEST(Results, NamesOfFilesAreSafeAndDifferent) {
  const std::vector<std::string> names = {"a/b:0", "a_b_0", "", "..", "x\xFF\xFE", ".hidden", std::string(300, 'n')};
  const std::vector<std::string> keys = file_keys(names);
  EXPECT_EQ(std::vector<std::string>(keys.begin(), keys.begin() + 6),
            (std::vector<std::string>{"a_b_0_2", "a_b_0", "array2", "_.", "x__", "_hidden"}));
  EXPECT_EQ(keys[6].size(), 100U);
}

TEST(Results, AreReadAsTheyWereWritten) {
  const std::string folder = own_path("results");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const ir::Graph one = graph({"a"}), two = graph({"a/b", "a:b"});
  const std::vector<std::string> single = {"cat.png"}, several = {"cat.png", "cat.bmp"};
  struct Case {
    std::string path;
    const ir::Graph* graph;
    const std::vector<std::string>* names;
    std::vector<std::string> files;  // or part of the error
  };
  const Case kCases[] = {{"x.npy", &one, &single, {"x.npy"}},
                         {"x.npz", &two, &single, {"x.npz"}},
                         {"d1", &two, &single, {"d1/a_b.npy", "d1/a_b_2.npy"}},
                         {"d2", &one, &several, {"d2/cat/a.npy", "d2/cat_2/a.npy"}},
                         {"y.npy", &two, &single, {"the network has 2 outputs"}},
                         {"y.npy", &one, &several, {"one inference"}},
                         {"y.npz", &one, &several, {"one inference"}}};
  for (const Case& c : kCases) {
    const auto place = ResultPlace::create(folder + "/" + c.path, *c.graph, *c.names);
    if (!place.ok()) {
      EXPECT_NE(place.error().message.find(c.files[0]), std::string::npos) << place.error().message;
      continue;
    }
    EXPECT_TRUE(place->check().ok());
    for (size_t i = 0; i < c.names->size(); ++i) {
      std::vector<Bytes> outputs;
      for (size_t k = 0; k < c.graph->outputs.size(); ++k)
        outputs.push_back({static_cast<uint8_t>(i), static_cast<uint8_t>(k)});
      ASSERT_TRUE(place->write(i, outputs).ok());
      const auto back = place->read(i);
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(*back, outputs);
    }
    for (const std::string& file : c.files) EXPECT_TRUE(std::filesystem::is_regular_file(folder + "/" + file)) << file;
  }
  std::filesystem::remove_all(folder);
}

TEST(Results, OfNoKnownSizeAreAnErrorThatNamesTheirOperation) {
  ir::Graph odd = graph({"y"});
  odd.tensor(0).dtype = ir::DType::variant;
  odd.add_op(
      {.kind = ir::OpKind::opaque, .opaque_name = "NonZero", .attrs = ir::OpaqueAttrs{}, .inputs = {}, .outputs = {0}});
  const std::vector<std::string> single = {"x.npy"};
  const auto place = ResultPlace::create(own_path("odd.npz"), odd, single);
  ASSERT_FALSE(place.ok());
  EXPECT_EQ(place.error().message,
            "'y': its size is unknown before the run, as NonZero computes it: run the model with ONNX Runtime");
}

// Arrays named as we write them, as the tensors, or by place; no array is used for two tensors.
TEST(Results, EachOutputHasAnArrayOfItsOwn) {
  const std::string path = own_path("names.npz");
  const std::vector<std::string> single = {"cat.png"};
  struct Case {
    std::vector<std::string> outputs, arrays;  // arrays: names in the file, in order; empty: as written
    std::vector<uint8_t> read;                 // for each output, the place of its array; empty: an error
  };
  const std::vector<Case> kCases = {{{"a/b", "a_b"}, {}, {0, 1}},
                                    {{"a_b", "a/b"}, {}, {0, 1}},
                                    {{"out", "out", "out_2"}, {}, {0, 1, 2}},
                                    {{"a/b", "a_b"}, {"a_b", "a/b"}, {1, 0}},
                                    {{"a/b", "a_b"}, {"arr_1", "arr_0"}, {1, 0}},
                                    {{"arr_1", "arr_0"}, {"arr_0", "arr_1"}, {1, 0}},
                                    {{"x", "a_b", "a/b"}, {"arr_0", "a/b", "a_b"}, {0, 2, 1}},
                                    {{"x", "arr_0"}, {"arr_1", "arr_0"}, {}},
                                    {{"x:0", "y:0"}, {"x_0", "y_0"}, {0, 1}},
                                    {{"a/b", "c:0"}, {"c_0", "a/b"}, {1, 0}},
                                    {{"a/b", "c:0"}, {"arr_1", "a/b"}, {1, 0}},
                                    {{"a/b", "a_b"}, {"a_b"}, {}},
                                    {{"out", "out"}, {"out"}, {}}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("{} of {}", fmt::join(c.outputs, " "), fmt::join(c.arrays, " ")));
    const ir::Graph several = graph(c.outputs);
    const ResultPlace place = ResultPlace::create(path, several, single).value();
    std::vector<Bytes> values;
    for (uint8_t i = 0; i < std::max(c.outputs.size(), c.arrays.size()); ++i) values.push_back({i, i});
    std::vector<ZipEntry> files;
    for (size_t i = 0; i < c.arrays.size(); ++i)
      files.push_back({c.arrays[i] + ".npy", npy_of(several.tensor(several.outputs[0]), values[i]).value()});
    ASSERT_TRUE(files.empty() ? place.write(0, values).ok() : write_file(path, zip_of(files).value()).ok());
    const auto back = place.read(0);
    ASSERT_EQ(back.ok(), !c.read.empty()) << (back.ok() ? "" : back.error().message);
    for (size_t i = 0; i < c.read.size(); ++i) EXPECT_EQ((*back)[i], (Bytes{c.read[i], c.read[i]})) << i;
  }
  std::filesystem::remove(path);
}

// A changed name never replaces another output's own name.
TEST(Results, ArraysAreCalledAsTheOutputs) {
  const std::string path = own_path("called.npz");
  const std::vector<std::string> single = {"cat.png"};
  const std::vector<std::string> names = {"a/y", "a_y", "x:0", "\xC3\xA9", "a_y", "", "../up", "/root", "x\xFF"};
  const std::vector<std::string> arrays = {"a/y", "a_y", "x:0", "\xC3\xA9", "a_y_2", "array5", "_._up", "_root", "x_"};
  const ResultPlace place = ResultPlace::create(path, graph(names), single).value();
  ASSERT_TRUE(place.write(0, std::vector<Bytes>(names.size(), Bytes{1, 2})).ok());
  const Bytes file = read_file(path).value();
  const std::vector<ZipMember> members = zip_members(file).value();
  ASSERT_EQ(members.size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) EXPECT_EQ(members[i].name, arrays[i] + ".npy");
  EXPECT_EQ(file[7], 1 << 3) << "names are UTF-8";
  std::filesystem::remove(path);
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

TEST(Results, DeviationsAreCounted) {
  const ir::Tensor small{.name = "s", .dtype = ir::DType::int8, .shape = {2, 2}};
  const ir::Tensor real{.name = "r", .dtype = ir::DType::float32, .shape = {3}};
  const ir::Tensor wide{.name = "w", .dtype = ir::DType::int64, .shape = {2}};
  const ir::Tensor half{.name = "h", .dtype = ir::DType::float16, .shape = {1}};
  const ir::Tensor odd{.name = "o", .dtype = ir::DType::complex64, .shape = {1}};
  struct Case {
    const ir::Tensor* tensor;
    Bytes got, wanted;
    double tolerance;
    int64_t differing, at;
    double worst;
  };
  const float nan = std::nanf("");
  const Case kCases[] = {
      {&small, {1, 2, 3, 4}, {1, 2, 3, 4}, 0, 0, 0, 0},
      {&small, {1, 2, 3, 0x80}, {1, 4, 3, 0x7F}, 0, 2, 3, 255},
      {&small, {1, 2, 3, 0x80}, {1, 4, 3, 0x7F}, 2, 1, 3, 255},
      {&real, bytes_of<float>({1, nan, 0}), bytes_of<float>({1, nan, -0.0F}), 0, 0, 0, 0},
      {&real, bytes_of<float>({1, 9, nan}), bytes_of<float>({2, 8, 0}), 100, 1, 2, nan},
      {&real, bytes_of<float>({INFINITY, 9, 1}), bytes_of<float>({INFINITY, -INFINITY, 0}), 1, 1, 1, INFINITY},
      {&wide, bytes_of<int64_t>({INT64_MAX, 7}), bytes_of<int64_t>({INT64_MAX - 1, 7}), 0, 1, 0, 1},
      {&wide, bytes_of<int64_t>({INT64_MAX, 7}), bytes_of<int64_t>({INT64_MIN, 7}), 0, 1, 0, std::ldexp(1.0, 64)},
      {&half, {1, 2}, {1, 2}, 0, 0, 0, 0},
      {&half, {1, 2}, {1, 3}, 0, 1, 0, std::ldexp(1.0, -16)},
      {&odd, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 9}, 1e9, 1, 0, nan}};
  for (const Case& c : kCases) {
    const Deviation got = deviation(*c.tensor, c.got, c.wanted, c.tolerance);
    EXPECT_EQ(got.differing, c.differing) << c.tensor->name;
    EXPECT_EQ(got.at, c.at) << c.tensor->name;
    EXPECT_TRUE(got.worst == c.worst || (std::isnan(got.worst) && std::isnan(c.worst))) << got.worst;
  }
  const Bytes got = {1, 2, 3, 0x80}, wanted = {1, 4, 3, 0x7F};
  EXPECT_EQ(describe(small, got, wanted, deviation(small, got, wanted, 1), 1),
            "output 's': 2 of 4 elements differ by more than 1, worst by 255 at [1, 1]: -128, expected 127");
}

// Integers without a scale, and floats that nothing quantizes, have no steps.
TEST(Noise, MovesOnlyInputsWithSteps) {
  for (const bool is_quantized : {false, true}) {
    for (const ir::DType type : {ir::DType::uint8, ir::DType::int8, ir::DType::int16, ir::DType::int32,
                                 ir::DType::int64, ir::DType::boolean, ir::DType::float32}) {
      ir::Graph one;
      one.inputs = {one.add_tensor({.name = "in", .dtype = type, .shape = {1, 4}})};
      const ir::Tensor to{.name = "out", .dtype = ir::DType::int8, .shape = {1, 4}, .quant = {{0.5F}, {3}}};
      one.outputs = {one.add_tensor(to)};
      const auto kind = is_quantized ? ir::OpKind::quantize : ir::OpKind::cast;
      one.add_op({.kind = kind, .attrs = ir::default_attrs(kind), .inputs = {0}, .outputs = {1}});
      const std::vector<Bytes> inputs = {Bytes(static_cast<size_t>(one.tensor(0).bytes()))};
      const auto noisy = with_noise(one, inputs);
      const bool is_byte = type == ir::DType::uint8 || type == ir::DType::int8;
      EXPECT_EQ(noisy.has_value(), is_byte || (is_quantized && type == ir::DType::float32)) << ir::dtype_name(type);
    }
  }
}

}  // namespace
}  // namespace skillet::tools
