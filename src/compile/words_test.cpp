// Texts about ONNX networks use ONNX's names.
#include "compile/words.h"

#include <gtest/gtest.h>

namespace skillet::compile {
namespace {

TEST(Words, AreThoseOfTheFormat) {
  struct Case {
    const char *said, *in_onnx;
  };
  for (const Case& row :
       {Case{"no known program of the NPU computes POW", "no known program of the NPU computes Pow"},
        Case{"ADD_N, then ADD", "Sum, then Add"}, Case{"CONV_2D 'POW' of 'it's' ADD", "Conv 'POW' of 'it's' Add"},
        Case{"PAD", "Pad"}, Case{"LSTM of 8 MACs", "LSTM of 8 MACs"}, Case{"PADV2_of", "PADV2_of"},
        Case{"an odd ' ADD", "an odd ' Add"}, Case{"", ""}}) {
    EXPECT_EQ(in_words(Words::onnx, row.said), row.in_onnx);
    EXPECT_EQ(in_words(Words::tflite, row.said), row.said);
  }
}

}  // namespace
}  // namespace skillet::compile
