// Graphs of kinds that the recorded models of tests/conformance do not contain.
// Called by graphs_test.cpp.
// Must not know: what the tests check.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace skillet::answers {

inline std::vector<std::string> more_graphs() {
  std::vector<std::string> out;
  const auto add = [&](const std::string& text) { out.push_back("graph \"more\"\n" + text); };
  const auto unary = [&](const char* op, const char* from, const char* to) {
    add(fmt::format(
        "tensor 0 \"x\" {} 1x3x2x5{}\ntensor 1 \"y\" {} 1x3x2x5{}\ninputs 0\noutputs 1\nop 0 {} in=[0] out=[1]\n", from,
        from[0] == 'i' && from[3] == '8' ? " scale=0.05 zero=3" : "", to,
        to[0] == 'i' && to[3] == '8' ? " scale=0.04 zero=-5" : "", op));
  };
  for (const char* op : {"CEIL", "COS", "ELU", "FLOOR", "LOG", "NEG", "ROUND", "SIGN", "SIN", "ZEROS_LIKE"})
    unary(op, "float32", "float32");
  for (const char* op : {"ELU", "LOG"}) unary(op, "int8", "int8");
  for (const char* op : {"NEG", "SIGN", "ZEROS_LIKE"}) unary(op, "int32", "int32");
  unary("LOGICAL_NOT", "boolean", "boolean");
  for (const char* to : {"int32", "uint8", "boolean", "int64"}) unary("CAST", "float32", to);
  for (const char* from : {"int32", "boolean", "uint8"}) unary("CAST", from, "int16");
  for (const char* op : {"LESS", "LESS_EQUAL", "GREATER"}) {
    for (const char* type : {"int8", "uint8", "int32", "float32"}) {
      const char* const quant = type[3] == '8' || type[4] == '8' ? " scale=0.05 zero=3" : "";
      const char* const other = type[3] == '8' || type[4] == '8' ? " scale=0.07 zero=1" : "";
      add(fmt::format(
          "tensor 0 \"a\" {0} 1x3x2x5{1}\ntensor 1 \"b\" {0} 2x5{2}\ntensor 2 \"y\" boolean 1x3x2x5\ninputs 0 1\n"
          "outputs 2\nop 0 {3} in=[0 1] out=[2]\n",
          type, quant, other, op));
    }
  }
  add("tensor 0 \"a\" float32 2x5\ntensor 1 \"b\" float32 2x5\ntensor 2 \"y\" float32 2x5\ninputs 0 1\noutputs 2\n"
      "op 0 ATAN2 in=[0 1] out=[2]\n");
  for (const char* op : {"SUM", "REDUCE_PROD"}) {
    for (const char* type : {"float32", "int8 ", "int32"}) {
      const char* const quant = type[3] == '8' ? "scale=0.05 zero=3" : "";
      add(fmt::format(
          "tensor 0 \"x\" {0} 1x3x2x5 {1}\ntensor 1 \"axes\" int32 2 const=[1 2]\ntensor 2 \"y\" {0} 1x1x1x5 {1}\n"
          "inputs 0\noutputs 2\nop 0 {2} in=[0 1] out=[2] keep_dims=true\n",
          type, quant, op));
    }
  }
  for (const char* type : {"float32", "int8", "int32"}) {
    add(fmt::format(
        "tensor 0 \"x\" {0} 3x2x5\ntensor 1 \"axis\" int32 1 const=[1]\ntensor 2 \"y\" {0} 3x1x2x5\ninputs 0\n"
        "outputs 2\nop 0 EXPAND_DIMS in=[0 1] out=[2]\n",
        type));
    add(
        fmt::format("tensor 0 \"x\" {0} 3x1x5\ntensor 1 \"y\" {0} 3x5\ninputs 0\noutputs 1\n"
                    "op 0 SQUEEZE in=[0] out=[1] axes=[1]\n",
                    type));
    add(fmt::format(
        "tensor 0 \"x\" {0} 3x2x5\ntensor 1 \"shape\" int32 2 const=[6 -1]\ntensor 2 \"y\" {0} 6x5\ninputs 0\n"
        "outputs 2\nop 0 RESHAPE in=[0 1] out=[2]\n",
        type));
    add(fmt::format(
        "tensor 0 \"x\" {0} 3x6\ntensor 1 \"sizes\" int32 3 const=[1 3 -1]\ntensor 2 \"axis\" int32 1 const=[1]\n"
        "tensor 3 \"a\" {0} 3x1\ntensor 4 \"b\" {0} 3x3\ntensor 5 \"c\" {0} 3x2\ninputs 0\noutputs 3 4 5\n"
        "op 0 SPLIT_V in=[0 1 2] out=[3 4 5]\n",
        type));
    add(
        fmt::format("tensor 0 \"x\" {0} 2x3x5\ntensor 1 \"a\" {0} 2x5\ntensor 2 \"b\" {0} 2x5\ntensor 3 \"c\" {0} 2x5\n"
                    "inputs 0\noutputs 1 2 3\nop 0 UNPACK in=[0] out=[1 2 3] count=3 axis=1\n",
                    type));
  }
  // Operations with several inputs whose types and shapes depend on one another.
  for (const char* type : {"float32", "int8"}) {
    const char* const quant = type[0] == 'i' ? " scale=0.05 zero=3" : "";
    const std::string inputs =
        fmt::format("tensor 0 \"a\" {0} 2x3{1}\ntensor 1 \"b\" {0} 2x3{1}\ntensor 2 \"c\" {0} 2x3{1}\n", type, quant);
    add(inputs +
        fmt::format("tensor 3 \"y\" {} 2x3x3{}\ninputs 0 1 2\noutputs 3\nop 0 PACK in=[0 1 2] out=[3] count=3 axis=1\n",
                    type, quant));
    add(inputs +
        fmt::format("tensor 3 \"y\" {} 2x9{}\ninputs 0 1 2\noutputs 3\nop 0 CONCATENATION in=[0 1 2] out=[3] axis=1\n",
                    type, quant));
    if (type[0] == 'f')
      add(inputs + fmt::format("tensor 3 \"y\" {} 2x3{}\ninputs 0 1 2\noutputs 3\nop 0 ADD_N in=[0 1 2] out=[3]\n",
                               type, quant));
  }
  for (const char* op : {"UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_PROD"}) {
    add(fmt::format(
        "tensor 0 \"x\" int32 4x3\ntensor 1 \"ids\" int32 4 const=[1 0 2 1]\ntensor 2 \"n\" int32 1 const=[3]\n"
        "tensor 3 \"y\" int32 3x3\ninputs 0\noutputs 3\nop 0 {} in=[0 1 2] out=[3]\n",
        op));
  }
  add("tensor 0 \"a\" int32 1 const=[2]\ntensor 1 \"b\" int32 1 const=[11]\ntensor 2 \"d\" int32 1 const=[3]\n"
      "tensor 3 \"y\" int32 3\ninputs\noutputs 3\nop 0 RANGE in=[0 1 2] out=[3]\n");
  add("tensor 0 \"x\" float32 1x4x4x3\ntensor 1 \"y\" float32 1x2x2x3\ninputs 0\noutputs 1\n"
      "op 0 L2_POOL_2D in=[0] out=[1] padding=valid filter_h=2 filter_w=2 stride_h=2 stride_w=2\n");
  add("tensor 0 \"x\" float32 1x2x2x8\ntensor 1 \"y\" float32 1x2x2x8\ninputs 0\noutputs 1\n"
      "op 0 LOCAL_RESPONSE_NORMALIZATION in=[0] out=[1] radius=2 bias=1 alpha=0.5 beta=0.75\n");
  return out;
}

}  // namespace skillet::answers
