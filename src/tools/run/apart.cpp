#include "tools/run/apart.h"

#include <filesystem>

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

bool is_same(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code failure;
  const fs::file_status status = fs::status(a, failure);
  if (fs::exists(status)) return fs::is_regular_file(status) && fs::equivalent(a, b, failure) && !failure;
  const fs::path at = fs::weakly_canonical(a, failure);
  if (failure) return false;
  return at == fs::weakly_canonical(b, failure) && !failure;
}

}  // namespace

Result<void> check_apart(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written) {
  for (size_t i = 0; i < written.size(); ++i) {
    const NamedFile& to = written[i];
    for (const NamedFile& from : read) {
      if (is_same(to.path, from.path))
        return error(ErrorCode::invalid_argument, "{}: {} is the file that {} reads", to.option, to.path, from.option);
    }
    for (size_t k = 0; k < i; ++k) {
      if (is_same(to.path, written[k].path))
        return error(ErrorCode::invalid_argument, "{}: {} is the file that {} writes", to.option, to.path,
                     written[k].option);
    }
  }
  return {};
}

}  // namespace skillet::tools
