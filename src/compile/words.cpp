#include "compile/words.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace skillet::compile {
namespace {

struct OnnxName {
  ir::OpKind kind;
  std::string_view name;
};
constexpr OnnxName kOnnxNames[] = {
#define NAME_OF_ONNX(kind, name) {ir::OpKind::kind, name},
#include "compile/names_onnx.def"
#undef NAME_OF_ONNX
};

std::string_view onnx_name(std::string_view word) {
  const auto is_it = [&](const OnnxName& row) { return ir::op_kind_name(row.kind) == word; };
  const auto* const row = std::ranges::find_if(kOnnxNames, is_it);
  return row == std::end(kOnnxNames) ? word : row->name;
}

}  // namespace

std::string in_words(Words words, std::string text) {
  if (words == Words::tflite) return text;
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t quote = rest.front() == '\'' ? rest.find('\'', 1) : std::string_view::npos;
    const auto end = std::ranges::find_if_not(rest, is_letter);
    size_t size = static_cast<size_t>(end - rest.begin());
    if (size != 0)
      out += onnx_name(rest.substr(0, size));
    else
      out += rest.substr(0, size = quote == std::string_view::npos ? 1 : quote + 1);
    rest.remove_prefix(size);
  }
  return out;
}

std::string op_name(Words words, const ir::Op& op) { return in_words(words, std::string(ir::op_name(op))); }

void put_in_words(Words words, std::span<OpRow> rows) {
  for (OpRow& row : rows)
    for (std::string* const text : {&row.kind, &row.why, &row.plain, &row.note})
      *text = in_words(words, std::move(*text));
}

void put_in_words(Words words, std::span<passes::Rewrite> rewrites) {
  for (passes::Rewrite& one : rewrites) one.text = in_words(words, std::move(one.text));
}

}  // namespace skillet::compile
