// Golden cases: always the small ones of this folder, and the whole suite if it is beside the source tree.
#include "conformance.h"

#include <gtest/gtest.h>

#include "base/testing/in_tree.h"
#include "sha256.h"

namespace skillet::golden {
namespace {

void expect_conforming(const std::string& golden_dir, int cases_min) {
  const Result<Tally> tally = run_all(golden_dir);
  ASSERT_TRUE(tally.ok()) << tally.error().message;
  print(*tally);
  EXPECT_TRUE(tally->failed.empty());
  for (const auto& [reason, cases] : tally->not_covered)  // a kernel that was removed is not an accepted reason
    EXPECT_NE(reason.find("was not kept"), std::string::npos) << reason << " (" << cases << " cases)";
  EXPECT_GE(tally->passed, cases_min);
}

TEST(Conformance, SmallCases) { expect_conforming(skillet::in_tree("tests/conformance"), 150); }

TEST(Conformance, WholeSuite) {
  const auto golden_dir = find_golden_dir();
  if (!golden_dir) GTEST_SKIP() << "no golden suite (../shared/golden or SKILLET_GOLDEN)";
  expect_conforming(*golden_dir, 1);
}

TEST(Conformance, WrongOutputIsFound) {
  CaseOutput output{
      .name = "o", .bytes = 3, .sha256_128 = sha256_hex(Bytes{1, 2, 3}).substr(0, 32), .expected = Bytes{1, 2, 3}};
  EXPECT_TRUE(compare_output(output, Bytes{1, 2, 3}).ok());
  EXPECT_FALSE(compare_output(output, Bytes{1, 2}).ok());
  const auto wrong = compare_output(output, Bytes{1, 9, 3});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "output 'o': 1 of 3 bytes differ, the first at 1: 9, expected 2");
}

TEST(Sha256, KnownValues) {
  const auto hash = [](std::string_view text) {
    return sha256_hex({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace skillet::golden
