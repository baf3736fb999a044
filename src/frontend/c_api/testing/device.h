// Set-up of tests of the C interface: a recorded case with a model of one convolution, and a device.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/testing/in_tree.h"
#include "skillet/skillet.h"

namespace skillet::c_api::test {

// Folder of the case's files.
inline const std::string kCase = in_tree("tests/captures/a311d_conv1x1_relu6_u8/");
inline const std::string kModel = kCase + "model.tflite";

struct Device {
  skillet_device* device = nullptr;
  explicit Device(const char* name) { EXPECT_EQ(skillet_open(name, &device), SKILLET_OK) << skillet_last_error(); }
  ~Device() { skillet_close(device); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
};

}  // namespace skillet::c_api::test
