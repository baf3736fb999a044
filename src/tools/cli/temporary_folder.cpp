#include "tools/cli/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/environment.h"

namespace skillet::tools {

Result<TemporaryFolder> TemporaryFolder::create(const std::string& name) {
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failure);
  const char* const wanted = environment_variable("TMPDIR");
  if (failure) return error(ErrorCode::io, "TMPDIR={}: {}", wanted == nullptr ? "" : wanted, failure.message());
  std::string path = (folder / ("skillet-" + name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  return TemporaryFolder(std::move(path));
}

}  // namespace skillet::tools
