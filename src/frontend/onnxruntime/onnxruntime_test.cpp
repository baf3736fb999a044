// Errors of the plug-in for hosts that are not supported.
#include <gtest/gtest.h>

#include <string>

#include "frontend/onnxruntime/factory.h"

namespace skillet::onnxruntime {
namespace {

std::string g_text;
OrtStatus* keep_text(int /*code*/, const char* text) {
  g_text = text;
  return reinterpret_cast<OrtStatus*>(&g_text);
}

TEST(Factory, RefusesHostsThatCannotCompile) {
  static const void* const table[] = {reinterpret_cast<const void*>(&keep_text)};
  const OrtApiBase base{.get_api = [](uint32_t version) -> Table { return version <= 22 ? table : nullptr; },
                        .get_version = []() { return "1.22.1"; }};
  OrtEpFactory* factory = nullptr;
  size_t count = 1;
  EXPECT_NE(create_factories(&base, nullptr, &factory, 4, &count), nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_NE(g_text.find("ONNX Runtime 1.22.1 cannot compile for plug-in providers; 1.23 or newer can"),
            std::string::npos)
      << g_text;
}

}  // namespace
}  // namespace skillet::onnxruntime
