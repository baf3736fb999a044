// Cases of the RK3576's vendor compiler with changed programs, each for a question that the recorded ones leave open.
// Called by vendor_capture.cpp. Must not know: simulators, buffers.
#pragma once

#include <span>
#include <string_view>

#include "vendor_files.h"

namespace skillet::golden {

// Set in the description of a case with small sums of both signs: nothing is added, and few inputs are nonzero.
constexpr const char* kSmallSums = "small_sums";

// Shifts products by one more bit, so that odd sums are halfway between two steps; results are these steps.
VendorCase with_halves(VendorCase c);
// Shifts by one more bit too, and leaves the results as before.
VendorCase with_one_more_bit(VendorCase c);
// Divides a window that begins in rows of the previous window into two: the second begins in rows of the first.
VendorCase with_three_windows(VendorCase c);

struct Variant {
  std::string_view name, suffix;  // of the case; of the file
  VendorCase (*make)(VendorCase c);
};
std::span<const Variant> variants();

}  // namespace skillet::golden
