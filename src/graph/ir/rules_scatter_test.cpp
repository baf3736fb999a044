// The limits of ops that place values by index, fold segments or compute shapes, from both sides.
#include "graph/ir/testing/rule_rows.h"

namespace skillet::ir {
namespace {

TEST(Rules, Scattering) {
  const char* const kScatter = R"(tensor 0 "at" int32 4x2
tensor 1 "updates" float32 4x5
tensor 2 "to" int32 3 const=[2 3 5]
tensor 3 "out" float32 7
inputs 0 1
op 0 SCATTER_ND in=[0 1 2] out=[3]
)";
  const char* const kUpdate = R"(tensor 0 "in" float32 4x5
tensor 1 "update" float32 2x3
tensor 2 "begin" int32 2
tensor 3 "out" float32 7
inputs 0 1 2
op 0 DYNAMIC_UPDATE_SLICE in=[0 1 2] out=[3]
)";
  const char* const kReverse = R"(tensor 0 "in" float32 4x5x6
tensor 1 "lengths" int32 4
tensor 2 "out" float32 7
inputs 0 1
op 0 REVERSE_SEQUENCE in=[0 1] out=[2] axis=1 batch_axis=0
)";
  const char* const kLookup = R"(tensor 0 "at" int32 3
tensor 1 "rows" float32 4x5
tensor 2 "out" float32 7
inputs 0 1
op 0 EMBEDDING_LOOKUP in=[0 1] out=[2]
)";
  const char* const kDiagonal = R"(tensor 0 "in" float32 2x3x4
tensor 1 "diagonal" float32 2x3
tensor 2 "out" float32 7
inputs 0 1
op 0 MATRIX_SET_DIAG in=[0 1] out=[2]
)";
  check({{kScatter, "4x2", "4x4", "4x2", "index tuples of 4 for 3"},
         {kScatter, "4x2", "scalar", "4x2", "index tuples"},
         {kScatter, "4x5", "4x6", "4x5", "should have shape 4x5"},
         {kScatter, "[2 3 5]", "[2 -3 5]", "[9 1 5]", "comes out as -3"},
         {kScatter, "at\" int32", "at\" float32", "at\" int64", "holds no indices"},
         {kScatter, "out\" float32", "out\" int32", "out\" float32", "change their type"},
         {kUpdate, "2x3", "2x6", "4x5", "does not fit"},
         {kUpdate, "2x3", "3", "1x1", "does not fit"},
         {kUpdate, "int32 2", "int32 3", "int64 2", "a list of 2"},
         {kUpdate, "update\" float32", "update\" int8", "update\" float32", "of another type"},
         {kReverse, "axis=1 ", "axis=3 ", "axis=2 ", "axis 3 is outside"},
         {kReverse, "axis=1 ", "axis=-1 ", "axis=1 ", "axis -1 is outside"},
         {kReverse, "axis=1 ", "axis=0 ", "axis=2 ", "on axis 0"},
         {kReverse, "int32 4", "int32 5", "int64 4", "a list of 4"},
         {kLookup, "4x5", "4", "4x5x6", "rows of 1 dimensions"},
         {kLookup, "int32 3", "int32 3x1", "int32 8", "must have 1 dimensions"},
         {kDiagonal, "float32 2x3\n", "float32 2x4\n", "float32 2x3\n", "does not fit"},
         {kDiagonal, "2x3x4", "4", "2x4x3", "fewer than 2"}});
}

TEST(Rules, Segments) {
  const char* const kSorted = R"(tensor 0 "in" float32 4x5
tensor 1 "ids" int32 4 const=[0 0 1 2]
tensor 2 "out" float32 7
inputs 0
op 0 SEGMENT_SUM in=[0 1] out=[2]
)";
  const char* const kUnsorted = R"(tensor 0 "in" float32 4x5
tensor 1 "ids" int32 4
tensor 2 "count" int32 scalar const=[3]
tensor 3 "out" float32 7
inputs 0 1
op 0 UNSORTED_SEGMENT_MAX in=[0 1 2] out=[3]
)";
  check({{kSorted, "[0 0 1 2]", "[0 0 2 2]", "[0 1 1 1]", "segment 2 after 0"},
         {kSorted, "[0 0 1 2]", "[-1 0 1 2]", "[0 1 2 3]", "segment -1 after"},
         {kSorted, "[0 0 1 2]", "[1 1 1 2]", "[0 0 0 0]", "segment 1 after -1"},
         {kSorted, "4x5", "5x5", "4", "a list of 5"},
         {kUnsorted, "ids\" int32 4", "ids\" int32 5", "ids\" int32 4x5", "does not fit"},
         {kUnsorted, "ids\" int32 4", "ids\" float32 4", "ids\" int64 4", "holds no indices"},
         {kUnsorted, "[3]", "[-1]", "[0]", "comes out as -1"}});
}

TEST(Rules, SizesFromValues) {
  const char* const kRange = R"(tensor 0 "start" int32 scalar const=[1]
tensor 1 "limit" int32 scalar const=[9]
tensor 2 "delta" int32 scalar const=[3]
tensor 3 "out" int32 7
op 0 RANGE in=[0 1 2] out=[3]
)";
  const char* const kNonMax = R"(tensor 0 "boxes" float32 6x4
tensor 1 "scores" float32 6
tensor 2 "most" int32 scalar const=[3]
tensor 3 "overlap" float32 scalar
tensor 4 "score" float32 scalar
tensor 5 "indices" int32 7
tensor 6 "count" int32 7
inputs 0 1 3 4
op 0 NON_MAX_SUPPRESSION_V4 in=[0 1 2 3 4] out=[5 6]
)";
  const char* const kNormal = R"(tensor 0 "in" float32 1x2x3x4
tensor 1 "out" float32 7
inputs 0
op 0 LOCAL_RESPONSE_NORMALIZATION in=[0] out=[1] radius=2 bias=1 alpha=1 beta=0.5
)";
  check({{kRange, "delta\" int32 scalar const=[3]", "delta\" int32 scalar const=[0]", "delta\" int32 scalar const=[9]",
          "no range from 1 to 9 by 0"},
         {kRange, "const=[9]", "const=[-9]", "const=[1]", "no range from 1 to -9 by 3"},
         {kNonMax, "6x4", "6x5", "6x4", "does not fit"},
         {kNonMax, "6x4", "5x4", "6x4", "does not fit"},
         {kNonMax, "[3]", "[-1]", "[9]", "comes out as -1"},
         {kNonMax, "float32 scalar", "float32 2", "float32 1", "must be one float32"},
         {kNormal, "radius=2", "radius=-1", "radius=0", "radius -1"},
         {kNormal, "1x2x3x4", "2x3x4", "1x1x1x1", "must have 4"}});
}

// Either of the two shapes may have more dimensions.
TEST(Rules, BroadcastShapesAreAsLongAsTheLongerOne) {
  for (const char* text : {R"(tensor 0 "a" int32 1 const=[3]
tensor 1 "b" int32 3 const=[2 1 3]
tensor 2 "out" int32 7
outputs 2
op 0 BROADCAST_ARGS in=[0 1] out=[2]
)",
                           R"(tensor 0 "a" int32 3 const=[2 1 3]
tensor 1 "b" int32 1 const=[3]
tensor 2 "out" int32 7
outputs 2
op 0 BROADCAST_ARGS in=[0 1] out=[2]
)"}) {
    auto graph = parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto inferred = infer_shapes(*graph);
    ASSERT_TRUE(inferred.ok()) << inferred.error().message;
    EXPECT_EQ(graph->tensor(2).shape, Shape{3});
  }
}

}  // namespace
}  // namespace skillet::ir
