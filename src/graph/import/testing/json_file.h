// Model files written as JSON of schema.fbs. Called by tests of the importer.
#pragma once

#include <flatbuffers/idl.h>
#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "base/testing/in_tree.h"

namespace skillet::tflite {

inline Bytes file_of_json(const std::string& json) {
  std::string schema;
  EXPECT_TRUE(flatbuffers::LoadFile(in_tree("src/graph/import/schema.fbs").c_str(), false, &schema));
  flatbuffers::IDLOptions options;
  options.strict_json = false;
  flatbuffers::Parser parser(options);
  EXPECT_TRUE(parser.Parse(schema.c_str())) << parser.error_;
  EXPECT_TRUE(parser.Parse(json.c_str())) << parser.error_;
  const uint8_t* data = parser.builder_.GetBufferPointer();
  return Bytes(data, data + parser.builder_.GetSize());
}

}  // namespace skillet::tflite
