// Untrusted texts: how they are displayed, and suggestions for misspelt words.
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/environment.h"

namespace skillet {
namespace {

TEST(Text, NothingSteersATerminal) {
  EXPECT_EQ(printable("cat\x1b[31m"), "cat?[31m");
  EXPECT_EQ(printable("a\x7f\rb\nc\t"), "a??b?c?");
  EXPECT_EQ(printable("a\nb\tc\rd", true), "a\nb\tc?d");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "?31m");                                                     // CSI in one character
  EXPECT_EQ(printable("\xC3\xA9\xC2\xA9\xff"), "\xC3\xA9\xC2\xA9\xff");  // letters and invalid UTF-8 are kept
  EXPECT_EQ(printable("\xC2"), "\xC2");                                  // truncated
  EXPECT_EQ(printable("a\xC2\x9B"), "a?");                               // at the end
  EXPECT_EQ(printable("\xC2\xA0"), "\xC2\xA0");
}

TEST(Text, NothingTurnsRound) {
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA9"),
            "a?b?");
  EXPECT_EQ(printable("\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA\xE2\x80"),
            "\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA\xE2\x80");
}

TEST(Text, WhatIsUtf8) {
  for (const char* text : {"", "a/b", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x8D\xB3", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text)) << text;
  // Alone, truncated, overlong, a surrogate, beyond the last code point.
  for (const char* text : {"\xff", "\x80", "a\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xE2\x82"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

// Table 3-7 of the Unicode standard, 15.0: valid byte sequences.
bool is_of_the_table(std::string_view text) {
  struct Row {
    int first, last;  // of the first byte
    std::vector<std::pair<int, int>> rest;
  };
  static const std::vector<Row> kTable = {{0x00, 0x7F, {}},
                                          {0xC2, 0xDF, {{0x80, 0xBF}}},
                                          {0xE0, 0xE0, {{0xA0, 0xBF}, {0x80, 0xBF}}},
                                          {0xE1, 0xEC, {{0x80, 0xBF}, {0x80, 0xBF}}},
                                          {0xED, 0xED, {{0x80, 0x9F}, {0x80, 0xBF}}},
                                          {0xEE, 0xEF, {{0x80, 0xBF}, {0x80, 0xBF}}},
                                          {0xF0, 0xF0, {{0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
                                          {0xF1, 0xF3, {{0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
                                          {0xF4, 0xF4, {{0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}}};
  for (size_t i = 0; i < text.size();) {
    const auto at = [&](size_t k) { return static_cast<int>(static_cast<unsigned char>(text[k])); };
    const auto row =
        std::ranges::find_if(kTable, [&](const Row& one) { return at(i) >= one.first && at(i) <= one.last; });
    if (row == kTable.end() || text.size() - i <= row->rest.size()) return false;
    for (const auto& [low, high] : row->rest) {
      ++i;
      if (at(i) < low || at(i) > high) return false;
    }
    ++i;
  }
  return true;
}

TEST(Text, Utf8IsWhatTheTableOfUnicodeSays) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      ASSERT_EQ(is_utf8(text), is_of_the_table(text)) << first << " " << second;
    }
  }
  constexpr unsigned char kEnds[] = {0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1,
                                     0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xF7, 0xF8};
  std::string text(4, 'a');
  for (const unsigned char a : kEnds) {
    for (const unsigned char b : kEnds) {
      for (const unsigned char c : kEnds) {
        text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
        ASSERT_EQ(is_utf8(text), is_of_the_table(text)) << int{a} << " " << int{b} << " " << int{c};
        for (const unsigned char d : {0x7F, 0x80, 0xBF, 0xC2}) {
          text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c), static_cast<char>(d)};
          ASSERT_EQ(is_utf8(text), is_of_the_table(text)) << int{a} << " " << int{b} << " " << int{c} << " " << int{d};
        }
      }
    }
  }
}

TEST(Text, TheNearestWordIsSuggested) {
  constexpr std::string_view kVerbs[] = {"run", "check", "compile", "diff", "doctor", "sim:a311d"};
  struct Case {
    std::string_view word, nearest;
  };
  constexpr Case kCases[] = {{"rnu", "run"},         {"rum", "run"},
                             {"RUN", "run"},         {"chekc", "check"},
                             {"complie", "compile"}, {"SIM:A311D", "sim:a311d"},
                             {"bogus", ""},          {"", ""},
                             {"a311d", ""},          {"docter", "doctor"},
                             {"difff", "diff"}};
  for (const Case& c : kCases) EXPECT_EQ(nearest(c.word, kVerbs), c.nearest) << c.word;
  // At most a third of the letters plus one may differ.
  constexpr std::string_view kLong[] = {"abcxyz"};
  EXPECT_EQ(nearest("abcdef", kLong), "abcxyz");
  EXPECT_EQ(nearest("abwdef", kLong), "");
  // At least half of the letters fit.
  constexpr std::string_view kShort[] = {"toy", "npu"};
  EXPECT_EQ(nearest("foo", kShort), "");
  EXPECT_EQ(nearest("gpu0", kShort), "npu");
  EXPECT_EQ(did_you_mean("rum", kVerbs), "; did you mean 'run'?");
  EXPECT_EQ(did_you_mean("bogus", kVerbs), "");
}

TEST(Text, HomeIsExpanded) {
  ASSERT_EQ(::setenv("HOME", "/home/me", 1), 0);
  EXPECT_EQ(expand_home("~/x"), "/home/me/x");
  EXPECT_EQ(expand_home("~"), "/home/me");
  EXPECT_EQ(expand_home("~you/x"), "~you/x");
  EXPECT_EQ(expand_home("/a/~/x"), "/a/~/x");
}

TEST(Text, MisspeltVariablesAreNamed) {
  const char* const environment[] = {"SKILLET_LOG=info",  "SKILLET_ALOW_UNPROVEN=1",
                                     "SKILET_DEVICE=npu", "SKILLET_VERSION=1",
                                     "SKILLET_LOGS=",     "HOME=/root",
                                     "SKILLS=none",       nullptr};
  const auto found = misspelt_variables(environment);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "SKILLET_ALOW_UNPROVEN: there is no such variable; did you mean 'SKILLET_ALLOW_UNPROVEN'?");
  EXPECT_NE(found[1].find("SKILLET_DEVICE"), std::string::npos) << found[1];
  EXPECT_NE(found[2].find("'SKILLET_LOG'"), std::string::npos) << found[2];
  EXPECT_TRUE(misspelt_variables(nullptr).empty());
}

TEST(Environment, EmptyVariablesAreNotSet) {
  const char* const name = "SKILLET_DEVICE";
  for (const auto& [set, read] : {std::pair("", false), std::pair("cpu", true)}) {
    ::setenv(name, set, 1);
    EXPECT_EQ(environment_variable(name) != nullptr, read) << '"' << set << '"';
  }
  ::unsetenv(name);
}

}  // namespace
}  // namespace skillet
