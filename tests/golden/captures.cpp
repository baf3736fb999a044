#include "captures.h"

#include <algorithm>
#include <filesystem>

namespace skillet::golden {

Result<std::vector<std::string>> list_captures(const std::string& dir, const std::string& chip) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(dir) / chip, failed)) {
    if (entry.path().filename() != "capture.json" && entry.path().filename() != "case.json") continue;
    const fs::path folder = entry.path().parent_path();
    names.push_back(folder.parent_path().filename().string() + "/" + folder.filename().string());
  }
  if (names.empty()) return error(ErrorCode::io, "{}/{}: no captures there", dir, chip);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace skillet::golden
