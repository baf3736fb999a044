// Support: whether the chip can run an op. If not: a reason, and what a user can do about it.
// Called by drivers (return it), graph/passes/partition and tools (read it).
// Must not know: a vendor's parameters.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/dtype.h"

namespace skillet::npu {

enum class Remedy : uint8_t {
#define REMEDY(name, text) name,
#include "npu/remedies.def"
#undef REMEDY
};
constexpr std::array kRemedyNames = {
#define REMEDY(name, text) std::string_view(#name),
#include "npu/remedies.def"
#undef REMEDY
};
constexpr std::array kRemedyTexts = {
#define REMEDY(name, text) std::string_view(text),
#include "npu/remedies.def"
#undef REMEDY
};
constexpr std::string_view remedy_name(Remedy remedy) { return kRemedyNames[static_cast<size_t>(remedy)]; }
constexpr std::string_view remedy_text(Remedy remedy) { return kRemedyTexts[static_cast<size_t>(remedy)]; }

// For an op refused because its type is not of 8 bits. Floats can be quantized, and 16-bit integers quantized again;
// other integers have no remedy.
constexpr Remedy remedy_of_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::float32:
    case ir::DType::float16:
    case ir::DType::bfloat16:
    case ir::DType::float64: return Remedy::quantize;
    case ir::DType::int16: return Remedy::activations;
    default: return Remedy::none;
  }
}

// An assumption of an op's program that no recorded job shows: a row of npus/<v>/compiler/assumptions.def. Rows are in
// the order in which a device is probed.
struct Assumption {
  std::string_view name, what, sections;  // sections of the hardware specification
  // The smallest graph (graph/ir/text.md) whose program shows whether it holds. Its ops stand on this row, and
  // otherwise only on earlier rows. Empty: no separate program can show it.
  std::string_view probe = "";
};

std::vector<std::string_view> names_of(const std::vector<const Assumption*>& assumptions);

// Why unproven=refuse leaves ops that stand on these to the CPU. `reason`: what is unproven; may be empty.
std::string why_refused(std::string_view reason, const std::vector<std::string_view>& names);

struct Support {
  bool ok = true;
  std::string reason;            // why not, e.g. "filter is quantized per channel; the chip has one scale per job"
  bool unproven = false;         // supported, but no known driver ever ran this on silicon; `reason` names it
  Remedy remedy = Remedy::none;  // if not ok: the remedy; if unproven: none means unproven=verify
  std::vector<const Assumption*> stands_on;  // if ok, and known to the driver
  bool alone = false;                        // needs a part of its own
  bool seen_wrong = false;                   // not ok, because its device was seen to compute it wrong

  // True if no recorded job shows the whole of its program.
  bool rests_on_assumptions() const { return unproven || !stands_on.empty(); }

  static Support yes() { return {}; }
  static Support yes_unproven(std::string reason) { return {true, std::move(reason), true}; }
  template <typename... Args>
  static Support no(Remedy remedy, fmt::format_string<Args...> format, Args&&... args) {
    return {false, fmt::format(format, std::forward<Args>(args)...), false, remedy};
  }
  static Support no_as_seen(std::string reason) {
    return {.ok = false, .reason = std::move(reason), .stands_on = {}, .seen_wrong = true};
  }
};

}  // namespace skillet::npu
