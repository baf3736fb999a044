// Graphs of one operation whose numbers can be varied.
// Called by limits_test.cpp and programs_test.cpp.
// Must not know: what the tests check.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace skillet::answers {

inline constexpr double kNumbersElemsMax = 1 << 22;  // of a tensor

// {name=value}: a number that is varied alone. A name that occurs twice has one value.
inline constexpr const char* kNumberTexts[] = {
    R"(tensor 0 "x" int8 1x{h=9}x{w=10}x{c=16} scale={sx=50}e-3 zero={zero=3}
tensor 1 "w" int8 {out=8}x{fh=3}x{fw=3}x{c=16} scale={sw=20}e-3 zero=0 const=xxh3:0:{bytes=1}
tensor 2 "y" int8 1x9x10x8 scale={sy=500}e-3 zero=4
inputs 0
outputs 2
op 0 CONV_2D in=[0 1 -] out=[2] padding=same stride_h={sh=1} stride_w={sw=1} dilation_h={dh=1} dilation_w={dw=1}
)",
    R"(tensor 0 "x" int8 1x{h=9}x{w=4}x{c=4} scale={sx=50}e-3 zero=3
tensor 1 "w" int8 {out=4}x{fh=3}x{fw=3}x{c=4} scale={sw=20}e-3 zero=0 const=xxh3:0:{bytes=1}
tensor 2 "b" int32 {biases=4} scale=0.001 zero={zb=0} const=random:1
tensor 3 "y" int8 1x9x10x8 scale={sy=500}e-3 zero=4
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] padding=same rows=[{top=1} {bottom=1}]
)",
    R"(tensor 0 "x" uint8 1x{h=9}x{w=10}x{c=16} scale={sx=50}e-3 zero=128
tensor 1 "w" uint8 1x{fh=3}x{fw=3}x{c=16} scale={sw=20}e-3 zero={zero=128} const=xxh3:0:{bytes=1}
tensor 2 "y" uint8 1x9x10x16 scale={sy=500}e-3 zero=128
inputs 0
outputs 2
op 0 DEPTHWISE_CONV_2D in=[0 1 -] out=[2] padding=valid depth_multiplier=1 stride_h={sh=1} stride_w={sw=1} dilation_h={dh=1} dilation_w={dw=1}
)",
    R"(tensor 0 "x" int8 {rows=1}x{c=24} scale={sx=50}e-3 zero=3
tensor 1 "w" int8 {out=10}x{c=24} scale={sw=20}e-3 zero=0 const=xxh3:0:{bytes=1}
tensor 2 "b" int32 {biases=10} scale=0.001 zero={zb=0} const=random:1
tensor 3 "y" int8 1x10 scale={sy=500}e-3 zero=4
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3]
)",
    R"(tensor 0 "x" int8 1x{h=60}x{w=60}x{c=16} scale={sx=50}e-3 zero=3
tensor 1 "y" int8 1x6x6x16 scale={sy=50}e-3 zero=3
inputs 0
outputs 1
op 0 {op=AVERAGE_POOL_2D} in=[0] out=[1] padding=same filter_h={fh=3} filter_w={fw=3} stride_h={sh=2} stride_w={sw=2}
)",
    R"(tensor 0 "x" uint8 1x{h=60}x{w=60}x{c=16} scale={sx=50}e-3 zero=0
tensor 1 "y" uint8 1x6x6x16 scale={sy=50}e-3 zero=0
inputs 0
outputs 1
op 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h={fh=2} filter_w={fw=2} stride_h={sh=2} stride_w={sw=2}
)",
    R"(tensor 0 "a" int8 1x{h=3}x{w=4}x{c=16} scale={sa=50}e-3 zero={za=0}
tensor 1 "b" int8 1x{h=3}x{w=4}x{c=16} scale={sb=70}e-3 zero={zb=0}
tensor 2 "y" int8 1x3x4x16 scale={tenths=1}e-1 zero=1
inputs 0 1
outputs 2
op 0 {op=ADD} in=[0 1] out=[2]
)",
    R"(tensor 0 "size" int32 4 const=[1 {oh=10} {ow=10} {out=6}]
tensor 1 "w" int8 {out=6}x{fh=3}x{fw=3}x{c=5} scale={sw=20}e-3 zero=0 const=xxh3:0:{bytes=1}
tensor 2 "x" int8 1x{h=5}x{w=5}x{c=5} scale={sx=50}e-3 zero=3
tensor 3 "y" int8 1x10x10x6 scale={sy=500}e-3 zero=3
inputs 2
outputs 3
op 0 TRANSPOSE_CONV in=[0 1 2] out=[3] padding=same stride_h={sh=2} stride_w={sw=2}
)",
    R"(tensor 0 "x" int8 1x{h=20}x{w=20}x{c=16} scale={sx=50}e-3 zero=3
tensor 1 "from" int32 4 const=[0 {y=1} {x=1} {z=0}]
tensor 2 "to" int32 4 const=[1 {y2=20} {x2=20} {z2=16}]
tensor 3 "step" int32 4 const=[1 {ys=1} {xs=1} {zs=1}]
tensor 4 "y" int8 1x19x19x16 scale={sy=50}e-3 zero=3
inputs 0
outputs 4
op 0 STRIDED_SLICE in=[0 1 2 3] out=[4]
)",
    R"(tensor 0 "x" int8 1x{h=5}x{w=5}x{c=16} scale={sx=50}e-3 zero=3
tensor 1 "margins" int32 4x2 const=[0 0 {top=1} {bottom=1} {left=1} {right=1} {front=0} {back=0}]
tensor 2 "y" int8 1x7x7x16 scale={sy=50}e-3 zero=3
inputs 0
outputs 2
op 0 PAD in=[0 1] out=[2]
)",
    R"(tensor 0 "x" int8 1x{h=4}x{w=4}x{c=8} scale={sx=50}e-3 zero=3
tensor 1 "size" int32 2 const=[{oh=8} {ow=8}]
tensor 2 "y" int8 1x8x8x8 scale={sy=50}e-3 zero=3
inputs 0
outputs 2
op 0 {op=RESIZE_NEAREST_NEIGHBOR} in=[0 1] out=[2] half_pixel_centers=true
)",
    R"(tensor 0 "x" int8 1x{h=8}x{w=8}x{c=8} scale={sx=50}e-3 zero=3
tensor 1 "axes" int32 2 const=[1 2]
tensor 2 "y" int8 1x1x1x8 scale={sy=50}e-3 zero=3
inputs 0
outputs 2
op 0 MEAN in=[0 1] out=[2] keep_dims=true
)",
    R"(tensor 0 "a" int8 1x{h=3}x{w=4}x{c=16} scale={sa=50}e-3 zero=3
tensor 1 "b" int8 1x{h=3}x{w=4}x{d=8} scale={sb=50}e-3 zero=3
tensor 2 "y" int8 1x3x4x24 scale={sy=50}e-3 zero=3
inputs 0 1
outputs 2
op 0 CONCATENATION in=[0 1] out=[2] axis=3
)",
    R"(tensor 0 "x" int8 1x{h=16}x{w=16}x{c=16} scale={sx=50}e-3 zero=3
tensor 1 "y" int8 1x8x8x64 scale={sy=50}e-3 zero=3
inputs 0
outputs 1
op 0 {op=SPACE_TO_DEPTH} in=[0] out=[1] block_size={size=2}
)",
    R"(tensor 0 "x" int8 {rows=2}x{c=24} scale={sx=50}e-3 zero={zero=3}
tensor 1 "y" int8 2x24 scale=0.00390625 zero=-128
inputs 0
outputs 1
op 0 SOFTMAX in=[0] out=[1] beta={beta=1}
)",
    R"(tensor 0 "x" int8 1x{h=8}x{w=8}x{c=8} scale={sx=50}e-3 zero={zx=3}
tensor 1 "y" int8 1x8x8x8 scale={sy=40}e-3 zero={zy=-4}
inputs 0
outputs 1
op 0 LEAKY_RELU in=[0] out=[1] alpha={alpha=100}e-3
)",
    R"(tensor 0 "x" int8 1x{h=8}x{w=8}x{c=8} scale={sx=50}e-3 zero={zx=3}
tensor 1 "y" int8 1x8x8x8 scale={sy=40}e-3 zero={zy=-4}
inputs 0
outputs 1
op 0 {op=RELU} in=[0] out=[1]
)",
    R"(tensor 0 "x" int8 1x{h=8}x{w=8}x{c=8} scale={sx=50}e-3 zero={zx=3}
tensor 1 "a" int8 {d=8} scale={sa=20}e-3 zero={za=1} const=random:1
tensor 2 "y" int8 1x8x8x8 scale={sy=40}e-3 zero={zy=-4}
inputs 0
outputs 2
op 0 PRELU in=[0 1] out=[2]
)"};
inline constexpr std::pair<std::string_view, std::array<std::string_view, 4>> kOtherOperations[] = {
    {"AVERAGE_POOL_2D", {"AVERAGE_POOL_2D", "MAX_POOL_2D"}},
    {"ADD", {"ADD", "MUL", "MAXIMUM", "SUB"}},
    {"RELU", {"RELU", "ABS", "TANH", "HARD_SWISH"}},
    {"RESIZE_NEAREST_NEIGHBOR", {"RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"}},
    {"SPACE_TO_DEPTH", {"SPACE_TO_DEPTH", "DEPTH_TO_SPACE"}}};

using Numbers = std::map<std::string, std::string>;
inline Numbers numbers_of(std::string_view text) {
  Numbers out;
  for (size_t at = 0; (at = text.find('{', at)) != std::string_view::npos; ++at) {
    const size_t mid = text.find('=', at), end = text.find('}', at);
    out[std::string(text.substr(at + 1, mid - at - 1))] = text.substr(mid + 1, end - mid - 1);
  }
  return out;
}
inline std::string with(std::string_view text, const Numbers& numbers) {
  std::string out = "graph \"g\"\n";
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    out += numbers.at(std::string(text.substr(open + 1, text.find('=', open) - open - 1)));
    at = text.find('}', open) + 1;
  }
  return out;
}
// Filters are zeros, of as many bytes as they have elements.
inline std::string sized(const std::string& text, Numbers numbers) {
  if (!numbers.contains("bytes")) return with(text, numbers);
  const auto of = [&](const char* name) { return numbers.contains(name) ? std::stoll(numbers[name]) : 1; };
  numbers["bytes"] = std::to_string(of("out") * of("fh") * of("fw") * of("c"));
  return with(text, numbers);
}
inline bool is_too_large(const Numbers& numbers) {
  double product = 1, filter = 1, result = 1;
  for (const char* name : {"h", "w", "c", "rows"}) product *= numbers.contains(name) ? std::stod(numbers.at(name)) : 1;
  for (const char* name : {"fh", "fw", "c", "out"}) filter *= numbers.contains(name) ? std::stod(numbers.at(name)) : 1;
  for (const char* name : {"oh", "ow", "c", "out"}) result *= numbers.contains(name) ? std::stod(numbers.at(name)) : 1;
  return product > kNumbersElemsMax || filter > kNumbersElemsMax || result > kNumbersElemsMax;
}

// Calls take(numbers, name) for each pair of sizes: the first one has a new value, and `name` is the second one. The
// value is a factor of 2^n or of 2^n + 1, so a product can be at such a limit and one beyond it.
template <typename Take>
void for_each_pair(const Numbers& numbers, Take take) {
  constexpr const char* kSizes[] = {"h", "w", "c", "d", "out", "rows", "fh", "fw", "oh", "ow", "dh", "sh", "size"};
  for (const char* first : kSizes) {
    for (const char* second : kSizes) {
      if (!numbers.contains(first) || !numbers.contains(second) || std::string_view(first) == second) continue;
      for (const char* value : {"1", "5", "8", "17"}) {
        Numbers changed = numbers;
        changed[first] = value;
        take(changed, second);
      }
    }
  }
}

inline std::vector<std::string> forms_of(const Numbers& numbers) {
  const auto op = numbers.find("op");
  if (op == numbers.end()) return {""};
  std::vector<std::string> out;
  for (const auto& [name, others] : kOtherOperations) {
    if (name != op->second) continue;
    for (const std::string_view one : others)
      if (!one.empty()) out.emplace_back(one);
  }
  return out;
}

}  // namespace skillet::answers
