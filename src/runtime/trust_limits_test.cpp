// The limits of trust files: their size, and the length of an entry's evidence.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/testing/own_folder.h"
#include "runtime/trust.h"

namespace skillet::runtime {
namespace {

const DeviceIdentity kOfLimits{.chip = "toy", .kernel_driver = "toy, Linux 6.18", .facts = {"serial=1"}};

TrustEntry with_evidence(std::string evidence) {
  return {.kind = TrustKind::assumption,
          .name = "a",
          .confirmed = true,
          .build = {},
          .date = {},
          .evidence = std::move(evidence)};
}

TEST(TrustLimits, OfEvidence) {
  const log::ScopedLevel quiet(log::Level::error);
  for (const size_t bytes : {511, 512, 513}) {
    const OwnFolder folder;
    Trust trust(kOfLimits, folder.path());
    trust.add({with_evidence(std::string(bytes, 'e'))});
    ASSERT_EQ(trust.file().entries.size(), 1U);
    EXPECT_EQ(trust.file().entries[0].evidence, bytes <= 512 ? std::string(bytes, 'e') : std::string(509, 'e') + "...");
  }
}

TEST(TrustLimits, OfTheFile) {
  const log::ScopedLevel quiet(log::Level::error);
  const OwnFolder folder;
  Trust(kOfLimits, folder.path()).add({with_evidence("seen")});
  const std::filesystem::path file = std::filesystem::path(folder.path()) / kOfLimits.file_name();
  for (const size_t bytes : {kTrustFileMax, kTrustFileMax + 1}) {
    std::ofstream(file, std::ios::app) << std::string(bytes - std::filesystem::file_size(file), '\n');
    EXPECT_EQ(Trust(kOfLimits, folder.path()).file().entries.size(), bytes <= size_t{4} << 20 ? 1U : 0U) << bytes;
  }
}

}  // namespace
}  // namespace skillet::runtime
