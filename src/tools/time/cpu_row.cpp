#include "tools/time/cpu_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compile/cpu_speed.h"
#include "tools/time/clocks.h"

namespace skillet::tools {
namespace {

// CPU part numbers of Arm Ltd., smaller cores first.
struct Part {
  std::string_view number, name;
};
constexpr std::array kParts = {Part{"0xd03", "A53"}, Part{"0xd05", "A55"}, Part{"0xd08", "A72"}, Part{"0xd09", "A73"},
                               Part{"0xd0b", "A76"}};

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Element type of the operation with most of the time: the first convolution, else the input.
std::string_view type_name(const ir::Graph& graph) {
  if (graph.inputs.empty()) return "i8";
  const auto conv = std::ranges::find(graph.ops, ir::OpKind::conv_2d, &ir::Op::kind);
  switch (graph.tensor(conv == graph.ops.end() ? graph.inputs[0] : conv->inputs[0]).dtype) {
    case ir::DType::uint8: return "u8";
    case ir::DType::float32: return "fp32";
    default: return "i8";
  }
}

// Quotes a field of a comma-separated row.
std::string field(std::string text) {
  std::ranges::replace(text, '"', '\'');
  return fmt::format("\"{}\"", text);
}

}  // namespace

std::string core_name(std::string_view cpuinfo) {
  std::string out;
  for (const Part& part : kParts)
    if (cpuinfo.find(part.number) != std::string_view::npos) out = part.name;
  return out;
}

std::string cpu_row(const std::string& model, const ir::Graph& graph, double ms, std::span<const double> op_ms) {
  const std::string core = core_name(text_of("/proc/cpuinfo"));
  double mhz = 0;
  for (const Clock& clock : read_clocks())
    if (clock.name.starts_with("cpu")) mhz = std::max(mhz, clock.mhz);
  std::array<double, compile::kCpuWorkNames.size()> sums{};
  for (size_t i = 0; i < op_ms.size(); ++i)
    sums[static_cast<size_t>(compile::cpu_work_of(graph, static_cast<ir::OpId>(i)))] += op_ms[i];
  std::string note;
  for (size_t i = 0; i < sums.size(); ++i)
    note += fmt::format("{}{} {:.3f}", i == 0 ? "" : "; ", compile::kCpuWorkNames[i], sums[i]);
  const std::string cpu = fmt::format("1x {} {:.2f} GHz", core.empty() ? "another core" : core, mhz / 1000);
  return fmt::format("soc,cpu,threads,engine,net,dtype,ms,source,note\n,{},1,skillet,{},{},{:.3f},measured,{}\n",
                     field(cpu), field(std::filesystem::path(model).stem().string()), type_name(graph), ms,
                     field(note));
}

}  // namespace skillet::tools
