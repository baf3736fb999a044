// A float model of the operations of a case of the RK3576's vendor compiler, and the comparison of results with it.
// Called by vendor_run.cpp, vendor_run_capture.cpp. Must not know: programs, simulators.
#pragma once

#include <functional>
#include <string>

#include "replay_row.h"
#include "vendor_case.h"

namespace skillet::golden {

bool is_pool(const VendorOp& op);

// A tensor in surfaces of 16 channels.
struct Surfaces {
  int32_t height = 0, width = 0, channels = 0;
  int64_t pitch = 0;  // bytes
  Bytes bytes;

  Surfaces(int32_t h, int32_t w, int32_t c, int64_t p);
  size_t at(int32_t y, int32_t x, int32_t c) const;
  int32_t value(int32_t y, int32_t x, int32_t c) const { return static_cast<int8_t>(bytes[at(y, x, c)]); }
  double real(int32_t y, int32_t x, int32_t c, const Quantized& q) const { return q.scale * (value(y, x, c) - q.zero); }
};

class FloatModel {
 public:
  FloatModel(const VendorStep& step, const Surfaces& in) : s_(step), in_(in) {}

  double real(int32_t y, int32_t x, int32_t channel) const;  // of a convolution
  double of(int32_t y, int32_t x, int32_t channel) const;    // in steps of the output

 private:
  double products(int32_t y, int32_t x, int32_t channel, int32_t input, int32_t inputs) const;
  double pooled(int32_t y, int32_t x, int32_t channel) const;

  const VendorStep& s_;
  const Surfaces& in_;
};

// Returns the function that a case is named after; none: no such function. `most_of`: the upper limit to which the
// vendor quantizes inputs of the DPU alone, as larger values make no difference.
using Function = double (*)(double);
Function function_of(const std::string& name);
double most_of(const std::string& name);

// Compares bytes with the values of a model, in steps.
ReplayRow compare_surfaces(const Surfaces& out,
                           const std::function<double(int32_t y, int32_t x, int32_t channel)>& model);

}  // namespace skillet::golden
