// Cases of the RK3576's vendor compiler with programs that no case has, each for a question that the recorded ones
// leave open. Called by vendor_capture.cpp. Must not know: simulators, buffers.
#pragma once

#include <span>
#include <string_view>

#include "vendor_files.h"

namespace skillet::golden {

// Set in the description of a case whose sums are small and of both signs: nothing is added, and few inputs are not 0.
constexpr const char* kSmallSums = "small_sums";

// Products less one more bit, of which each odd sum is in the middle between two steps; results are these steps.
VendorCase with_halves(VendorCase c);
// The same shift, and results as before.
VendorCase with_one_more_bit(VendorCase c);
// A window that begins in rows which the one before left, as two: the second begins in rows that the first left.
VendorCase with_three_windows(VendorCase c);

struct Variant {
  std::string_view name, suffix;  // of the case; of the file
  VendorCase (*make)(VendorCase c);
};
std::span<const Variant> variants();

}  // namespace skillet::golden
