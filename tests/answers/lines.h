// Lines of hashes of very many answers, programs or messages, compared with the expected lines of a file.
// Called by tests/answers and tests/conformance/emitted_test.cpp.
// Must not know: what is hashed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <string>

#include "base/testing/in_tree.h"

namespace skillet {

class Hash {
 public:
  void add(std::string_view text) {
    value_ = XXH3_64bits_withSeed(text.data(), text.size(), value_);
    ++count_;
  }
  void add(std::span<const uint8_t> bytes) { add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); }
  size_t count() const { return count_; }
  std::string text() const { return count_ == 0 ? "-" : fmt::format("{:08x}", static_cast<uint32_t>(value_)); }

 private:
  uint64_t value_ = 0;
  size_t count_ = 0;
};

// Lines "NAME: text" of a file in the source tree; lines that begin with # are its header.
using Lines = std::map<std::string, std::string>;
inline Lines lines_of(const std::string& path, std::string& head) {
  std::ifstream in(in_tree(path));
  Lines lines;
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with('#'))
      head += line + "\n";
    else if (colon != std::string::npos)
      lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return lines;
}

// Checks that all lines of the file whose names begin with `own` equal `now`. SKILLET_UPDATE=1 writes them.
inline void expect_lines(const std::string& path, const std::string& own, const Lines& now) {
  std::string head;
  Lines before = lines_of(path, head);
  if (std::getenv("SKILLET_UPDATE") != nullptr) {
    std::erase_if(before, [&](const auto& line) { return line.first.starts_with(own); });
    before.insert(now.begin(), now.end());
    std::ofstream out(in_tree(path));
    out << head;
    for (const auto& [name, text] : before) out << name << ": " << text << "\n";
    ASSERT_TRUE(out.flush().good()) << "cannot write " << path;
  }
  for (const auto& [name, text] : now) {
    const auto found = before.find(name);
    ASSERT_NE(found, before.end()) << path << ": no line for " << name << "; SKILLET_UPDATE=1 writes it anew";
    EXPECT_EQ(found->second, text) << name << ": not as in " << path << "; if that was meant, SKILLET_UPDATE=1";
  }
  for (const auto& [name, text] : before) EXPECT_TRUE(!name.starts_with(own) || now.contains(name)) << name;
}
// The same for hashes with the number of what they hash; their names come after `own`.
inline void expect_hashes(const std::string& path, const std::string& own, const std::map<std::string, Hash>& hashes) {
  Lines now;
  for (const auto& [name, hash] : hashes) now[own + name] = fmt::format("{} {}", hash.count(), hash.text());
  expect_lines(path, own, now);
}

}  // namespace skillet
