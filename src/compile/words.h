// Names of operations and tools in texts, by the model's format. Only this file knows both formats. Called where
// reports are made, and by front ends. Must not know: what a text means.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compile/report.h"

namespace skillet::compile {

enum class Words : uint8_t { tflite, onnx };

// "no known program computes POW on 'POW'" becomes "no known program computes Pow on 'POW'": quoted text, such as names
// of tensors, is kept.
std::string in_words(Words words, std::string text);
// "CONV_2D"; "Conv"
std::string op_name(Words words, const ir::Op& op);
// Translates all displayed texts.
void put_in_words(Words words, std::span<OpRow> rows);
void put_in_words(Words words, std::span<passes::Rewrite> rewrites);

}  // namespace skillet::compile
