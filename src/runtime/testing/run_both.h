// A network of one part on a device and on the CPU's kernels.
// Called by tests of operations.
// Must not know: any chip.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "graph/ref/ref.h"
#include "runtime/session.h"

namespace skillet::runtime {

struct Both {
  Bytes got, wanted;  // the first output
};

// Runs it on random bytes as the first input. None: the device does not take all of the graph.
inline std::optional<Both> run_both(const ir::Graph& graph, const char* device, const SessionOptions& options,
                                    uint32_t seed) {
  const auto target = open_target(device);
  EXPECT_TRUE(target.ok());
  auto session = Session::create(graph, *target, options);
  EXPECT_TRUE(session.ok()) << session.error().message;
  if (!session.ok() || (*session)->report().parts.size() != 1 || (*session)->programs(0).empty()) return std::nullopt;
  auto cpu = ref::Interpreter::create(graph);
  EXPECT_TRUE(cpu.ok());
  const std::span<uint8_t> input = cpu->tensor(graph.inputs[0]);
  std::mt19937 random(seed);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  EXPECT_TRUE((*session)->set_input(0, input).ok());
  const auto ran = (*session)->run();
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_TRUE(cpu->run().ok());
  const std::span<const uint8_t> got = (*session)->output(0).value(), wanted = cpu->tensor(graph.outputs[0]);
  return Both{Bytes(got.begin(), got.end()), Bytes(wanted.begin(), wanted.end())};
}

}  // namespace skillet::runtime
