// One field of a recorded submission set to another value, by the row that it was read by; nothing else changes.
// Called by `skillet replay`, `skillet edit` and tests.
// Must not know: a vendor's anything.
#pragma once

#include <string_view>

#include "npu/driver.h"

namespace skillet::npu {

// Set for an operation before and still in force: its words are that one's field, and have their place there.
inline bool is_inherited(const AnnotatedField& field) { return field.row != nullptr && !field.place; }

// The words that a field was read from. Error when the submission does not have them.
Result<std::vector<uint32_t>> words_of(const AnnotatedField& field, const capture::Submission& submission);

// `path`: as decode() names it, "job 1 nn_instruction.kernel_x_size". `text`: a number, in any base that C has, true or
// false, or an enum's name. Error when no field of that name can be set, or the value does not fit; nearest names help.
Result<void> set_field(const Driver& driver, const Chip& chip, capture::Submission& submission, std::string_view path,
                       std::string_view text);

// A field and its value, as set_field() takes them.
struct FieldValue {
  std::string path, text;
};
// All fields that can be set and whose bits have a name; of several with one path the first.
Result<std::vector<FieldValue>> field_values(const Driver& driver, const Chip& chip,
                                             const capture::Submission& submission);
// Many at once, by the names that the fields have before any is set. `at`: how many were set before an error.
Result<void> set_fields(const Driver& driver, const Chip& chip, capture::Submission& submission,
                        std::span<const FieldValue> values, size_t& at);

// Whether set_field() knows such a field of the submission, whatever the value.
bool has_field(const Driver& driver, const Chip& chip, const capture::Submission& submission, std::string_view path);

}  // namespace skillet::npu
