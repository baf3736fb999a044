// Texts about a network of ONNX say ONNX's words.
#include "compile/words.h"

#include <gtest/gtest.h>

namespace skillet::compile {
namespace {

TEST(Words, AreThoseOfTheFormat) {
  struct Row {
    const char *said, *in_onnx;
  };
  for (const Row& row :
       {Row{"no known program of the NPU computes POW", "no known program of the NPU computes Pow"},
        Row{"ADD_N, then ADD", "Sum, then Add"}, Row{"CONV_2D 'POW' of 'it's' ADD", "Conv 'POW' of 'it's' Add"},
        Row{"PAD", "Pad"}, Row{"LSTM of 8 MACs", "LSTM of 8 MACs"}, Row{"PADV2_of", "PADV2_of"},
        Row{"an odd ' ADD", "an odd ' Add"}, Row{"", ""}}) {
    EXPECT_EQ(in_words(Words::onnx, row.said), row.in_onnx);
    EXPECT_EQ(in_words(Words::tflite, row.said), row.said);
  }
}

}  // namespace
}  // namespace skillet::compile
