// Output of the command: results to stdout, errors to stderr, escaped so that a terminal can show them.
// Called by main.cpp and all verbs: no other code writes to these streams.
// Must not know: the content.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace skillet::tools {

// Writes to stdout, without control characters except line ends and tabs. finish_output() reports failures.
void out(std::string_view text);
template <typename... Args>
requires(sizeof...(Args) > 0) void out(fmt::format_string<Args...> format, Args&&... args) {
  out(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

// Writes unchanged text: for text that we made, with colours.
void out_drawing(std::string_view text);
// Flushes stdout. output_is_lost(): the reader is gone; endless work then stops.
void flush_output();
bool output_is_lost();

// Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value);
void out_json(const nlohmann::json& value);
// The object that --json of a verb prints, with the version of these reports added. The version grows when a key is
// removed or changes its meaning, not when one is added; docs/json/ has a schema for each verb.
inline constexpr int kReportVersion = 1;
nlohmann::json report_of(nlohmann::json report);
std::string report_text(nlohmann::json report);
void out_report(nlohmann::json report);

// "skillet: MESSAGE" to stderr. Never throws.
void complain(std::string_view message) noexcept;

// Call before files are opened: they must not get the numbers of closed standard streams.
void keep_standard_streams();
// Call at the end. Returns `exit_code`, or that of a failure if not all output could be written. Reports the failure,
// unless the reader has closed the pipe.
int finish_output(int exit_code);

}  // namespace skillet::tools
