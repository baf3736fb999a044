#include "tools/show/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/cli/exit_codes.h"

namespace skillet::tools {
namespace {

int g_failure = 0;  // errno of the first write to stdout that failed

void note_failure(bool failed) {
  if (failed && g_failure == 0) g_failure = errno == 0 ? EIO : errno;
}

}  // namespace

void out(std::string_view text) { out_drawing(printable(text, true)); }

void out_drawing(std::string_view text) {
  errno = 0;
  note_failure(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
}

bool output_is_lost() { return g_failure != 0; }

void flush_output() {
  errno = 0;
  note_failure(std::fflush(stdout) != 0);
}

std::string json_text(const nlohmann::json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void out_json(const nlohmann::json& value) { out(json_text(value)); }

nlohmann::json report_of(nlohmann::json report) {
  report["version"] = kReportVersion;
  return report;
}

std::string report_text(nlohmann::json report) { return json_text(report_of(std::move(report))); }

void out_report(nlohmann::json report) { out(report_text(std::move(report))); }

void complain(std::string_view message) noexcept {
  std::fflush(stdout);
  try {
    const std::string line = "skillet: " + printable(message) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {  // no memory for the text
    std::fputs("skillet: not enough memory\n", stderr);
  }
}

void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Read-only: writing then fails, as on a closed stream.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDONLY);
  }
}

int finish_output(int exit_code) {
  errno = 0;
  note_failure(std::fflush(stdout) != 0 || std::ferror(stdout) != 0);
  if (g_failure == 0) return exit_code;
  if (g_failure != EPIPE) complain(std::string("standard output: ") + std::strerror(g_failure));
  return exit_code == kFine ? kFailed : exit_code;
}

}  // namespace skillet::tools
