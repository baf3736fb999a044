// Whose operations and tools texts name: those of the model's format. The one place that knows both.
// Called where reports are made for people, and by front ends. Must not know: what a text says.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compile/report.h"

namespace skillet::compile {

enum class Words : uint8_t { tflite, onnx };

// "no known program computes POW on 'POW'" becomes "no known program computes Pow on 'POW'": what is in quotes, such as
// names of tensors, stays.
std::string in_words(Words words, std::string text);
// "CONV_2D"; "Conv"
std::string op_name(Words words, const ir::Op& op);
// All texts of what will be shown.
void put_in_words(Words words, std::span<OpRow> rows);
void put_in_words(Words words, std::span<passes::Rewrite> rewrites);

}  // namespace skillet::compile
