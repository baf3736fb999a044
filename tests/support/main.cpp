// Prints docs/support.md, or compares it with a file and names the difference.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/log.h"
#include "page.h"

namespace {

int compare(const std::string& path, const std::string& page) {
  std::ifstream file(path);
  std::string line;
  std::istringstream wanted(page);
  int number = 0;
  for (std::string now; std::getline(wanted, now);) {
    ++number;
    if (std::getline(file, line) && line == now) continue;
    fmt::print("{}:{}: the compilers say otherwise (./x support writes the page anew)\n  {}\n", path, number, now);
    return 1;
  }
  if (!std::getline(file, line)) return 0;
  fmt::print("{}:{}: nothing says this any longer (./x support writes the page anew)\n", path, number + 1);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const skillet::log::ScopedLevel quiet(skillet::log::Level::error);  // operations that are left out
  const auto page = skillet::support::page();
  if (!page.ok()) {
    fmt::print(stderr, "support: {}\n", page.error().message);
    return 2;
  }
  if (argc > 1) return compare(argv[1], *page);
  fmt::print("{}", *page);
  return 0;
}
