// What the command says: results to stdout, errors to stderr, each in a form that a terminal may be given.
// Called by main.cpp and all verbs: nothing else writes to either.
// Must not know: what is said.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace skillet::tools {

// To stdout, without control characters but line ends and tabs. Failures show in finish_output().
void out(std::string_view text);
template <typename... Args>
requires(sizeof...(Args) > 0) void out(fmt::format_string<Args...> format, Args&&... args) {
  out(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

// The same as it is: for what we made ourselves, colours included.
void out_drawing(std::string_view text);
// What was said so far is seen now. Nobody may be there to see it: work without an end stops then.
void flush_output();
bool output_is_lost();

// Bytes of names that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value);
void out_json(const nlohmann::json& value);
// What --json of a verb prints: an object, with the version of these reports in front. The version grows when a key
// goes or changes its meaning, not when one is added; docs/json/ has a schema for each verb.
inline constexpr int kReportVersion = 1;
nlohmann::json report_of(nlohmann::json report);
std::string report_text(nlohmann::json report);
void out_report(nlohmann::json report);

// "skillet: MESSAGE" to stderr. Never throws.
void complain(std::string_view message) noexcept;

// Before anything is opened: files must not get the numbers of standard streams that are closed.
void keep_standard_streams();
// At the very end: `exit_code`, or that of a failure when not all of the output could be written, which is said, but
// for a reader that went away.
int finish_output(int exit_code);

}  // namespace skillet::tools
