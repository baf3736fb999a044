// The meaning of the command's exit codes, in one table. The help of each verb shows it, the README repeats it.
// Called by main.cpp and the verbs.
// Must not know: how a verb works.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace skillet::tools {

inline constexpr int kFine = 0, kFailed = 1, kCannotBegin = 2;

struct ExitCodes {
  std::string_view verb, fine, failed, cannot_begin;
};

inline constexpr std::string_view kUnreadable = "wrong use, or an unusable file, device or output path";
inline constexpr std::array kExitCodes = {
    ExitCodes{"run", "it ran",
              "the run or the requested NPU failed, or outputs are outside what --compare, --expect or --task allow",
              kUnreadable},
    ExitCodes{"bench", "it ran", "a run or the requested NPU failed", kUnreadable},
    ExitCodes{"eval", "every picture ran",
              "a run or the requested NPU failed, a picture cannot be read, --require-npu or --bisect found what they "
              "look for",
              kUnreadable},
    ExitCodes{"check", "every operation can run",
              "an operation can run nowhere, less than --require is on the NPU, or the page cannot be written",
              kUnreadable},
    ExitCodes{"fix", "the model was written", "the passes or writing the model fail", kUnreadable},
    ExitCodes{"quantize", "the model was written", "running the model on the data, or writing it, fails", kUnreadable},
    ExitCodes{"plan", "times were found",
              "no chip is timed, an operation of the model can run nowhere, or the jobs cannot be read", kUnreadable},
    ExitCodes{"tune", "the tuning file is written",
              "the NPU takes nothing, nothing can be predicted or measured, or a run failed", kUnreadable},
    ExitCodes{"compile", "programs were compiled, or without -o all operations are predicted to be faster on the CPU",
              "there is nothing to write for the NPU (--partition all), or writing a program fails", kUnreadable},
    ExitCodes{"inspect", "it was shown", "the file is damaged or cut off, or a program in it is refused", kUnreadable},
    ExitCodes{"decode", "all was decoded", "a submission cannot be read or decoded", kUnreadable},
    ExitCodes{"edit", "the text or the capture was written", "writing it fails", kUnreadable},
    ExitCodes{"diff", "the same", "they differ", kUnreadable},
    ExitCodes{"lookup", "something was found", "nothing was", "wrong use"},
    ExitCodes{"replay", "it ran", "a job failed, its output differs, or none ran --beside another", kUnreadable},
    ExitCodes{"devices", "always", "the list cannot be written", "wrong use"},
    ExitCodes{"top", "always", "the list cannot be written", "wrong use"},
    ExitCodes{"trust", "it was shown or changed", "the file cannot be written",
              "no such device or entry, or an invalid file"},
    ExitCodes{"prove", "the device was tested, or the report was shown",
              "a job of the self-test is wrong, the device failed, or it did not come back",
              "wrong use, an unusable device, or a report that is invalid or for another device"},
    ExitCodes{"doctor", "an NPU is ready", "none is", "wrong use"},
    ExitCodes{"virtual", "the program's own", "the program's own", "wrong use, or the program's own"},
    ExitCodes{"capture", "the program's own", "the program's own, or not all was recorded",
              "wrong use, or the program's own"},
    ExitCodes{"bug", "the report is written", "writing it fails", kUnreadable},
    ExitCodes{"cdi", "the NPUs are described", "there is none, or a node cannot be queried", "wrong use"},
};

constexpr const ExitCodes* exit_codes_of(std::string_view verb) {
  const auto found = std::ranges::find(kExitCodes, verb, &ExitCodes::verb);
  return found == kExitCodes.end() ? nullptr : &*found;
}

}  // namespace skillet::tools
