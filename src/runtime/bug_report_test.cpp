// Reports of parts that fell back: each in its own file, a limited number, without leaked descriptors.
#include "runtime/bug_report.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/testing/open_files.h"
#include "base/testing/own_folder.h"

namespace skillet::runtime {
namespace {

TEST(BugReport, AFewAProcessEachInItsOwnFile) {
  const std::filesystem::path folder = own_path("reports");
  const auto report = [&](int i) { return folder / fmt::format("skillet-bug-{}-{}.tar", ::getpid(), i); };
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(folder / "elsewhere", report(3));  // a link with that name already exists
  ASSERT_EQ(::setenv("SKILLET_BUG_DIR", folder.c_str(), 1), 0);
  const size_t open = skillet::testing::open_files();
  for (int i = 1; i <= 10; ++i) report_fallback({}, {}, 0, {}, Error{ErrorCode::io, fmt::format("cause {} of 10", i)});
  ::unsetenv("SKILLET_BUG_DIR");
  EXPECT_EQ(skillet::testing::open_files(), open);
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
  for (int i = 1; i <= 10; ++i) {
    if (i == 3) continue;
    ASSERT_EQ(std::filesystem::exists(report(i)), i <= 8) << i;
    if (i > 8) continue;
    const Bytes file = read_file(report(i).string()).value();
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    EXPECT_NE(text.find(fmt::format("cause {} of 10", i)), std::string_view::npos);
    EXPECT_NE(text.find("options   tuning="), std::string_view::npos);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skillet::runtime
