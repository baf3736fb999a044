// Reads compiled parts from untrusted models: a part is restored or refused.
#include "frontend/onnxruntime/context.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/own_folder.h"
#include "frontend/onnxruntime/testing/stored_part.h"

namespace skillet::onnxruntime {
namespace {

using ir::DType;

TEST(StoredPart, RunsOnWhatItWasPreparedFor) {
  const auto part = Stored().read();
  ASSERT_TRUE(part.ok()) << part.error().message;
  const Bytes in = {0, 100, 127, 128, 129, 255};
  Bytes out(6);
  void* const outputs[] = {out.data()};
  const std::span<const uint8_t> right[] = {in};
  ASSERT_TRUE((*part)->run(right, outputs).ok());
  EXPECT_EQ(out, (Bytes{128, 128, 128, 128, 129, 255}));
  for (const size_t size : {size_t{0}, size_t{5}}) {
    const std::span<const uint8_t> wrong[] = {std::span(in).first(size)};
    const auto done = (*part)->run(wrong, outputs);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().message, fmt::format("input 'in' has {} bytes; it was prepared for 6", size));
  }
}

TEST(StoredPart, GoesWithItsNodeOrIsRefused) {
  using Change = void (*)(Stored&);
  struct Row {
    const char* refusal;
    Change change;
  };
  const Row rows[] = {
      {"",
       [](Stored& s) {
         s.model.values[0].dims = std::vector<int64_t>{-1, 2, 3};
       }},
      {"", [](Stored& s) { s.model.values[0].dims.reset(); }},
      {"'in' has shape 1x3x2, but 1x2x3 in the part",
       [](Stored& s) {
         s.model.values[0].dims = std::vector<int64_t>{1, 3, 2};
       }},
      {"'out' has shape 6, but 1x2x3 in the part", [](Stored& s) { s.model.values[1].dims = std::vector<int64_t>{6}; }},
      {"'in' has another type", [](Stored& s) { s.model.values[0].dtype = DType::float32; }},
      {"it has 1 inputs or outputs, its node 2",
       [](Stored& s) {
         s.model.nodes[0].inputs = {0, 0};
       }},
      {"its node omits one", [](Stored& s) { s.model.nodes[0].inputs = {onnx::kNone}; }},
      {"its bytes differ from those its node was written with: write the model again",
       [](Stored& s) { s.set("partition_name", "q"); }},
      {"its embed_mode is 2, neither 0 nor 1", [](Stored& s) { s.mode(2); }},
  };
  for (const Row& row : rows) {
    Stored stored;
    row.change(stored);
    EXPECT_EQ(stored.refusal(), row.refusal);
  }
}

TEST(StoredPart, IsInTheModelWhereOneFileHoldsIt) {
  EXPECT_TRUE(check_fits_model(INT32_MAX).ok());
  const auto refused = check_fits_model(uint64_t{INT32_MAX} + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("2147483648 bytes do not fit one ONNX file"), std::string::npos);
  EXPECT_NE(refused.error().message.find("ep.context_embed_mode 0"), std::string::npos);
}

TEST(StoredPart, IsInAFileBesideTheModelOnly) {
  const std::filesystem::path folder = own_path("stored_part");
  std::filesystem::create_directories(folder / "inner");
  Stored stored;
  for (const auto& place : {folder / "part.bin", folder / "inner/part.bin"})
    ASSERT_TRUE(write_file(place, stored.bytes).ok());
  const std::string model = folder / "model.onnx";
  stored.mode(0);
  stored.set("ep_cache_context", "part.bin");
  EXPECT_EQ(stored.refusal(model), "");
  EXPECT_NE(stored.refusal("").find("'part.bin' beside the model, which was not found"), std::string::npos);
  for (const std::string& name :
       {std::string(folder / "part.bin"), std::string("../") + folder.filename().string() + "/part.bin",
        std::string("inner/part.bin"), std::string("./part.bin"), std::string(".."), std::string("."), std::string(),
        std::string(300, 'a'), std::string("part.bin\0", 9)}) {
    stored.set("ep_cache_context", name);
    EXPECT_NE(stored.refusal(model).find("which is not the name of a file beside the model"), std::string::npos)
        << name;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skillet::onnxruntime
