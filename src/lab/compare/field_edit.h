// Sets one field of a recorded submission to another value, by the row that it was read by; nothing else changes.
// Called by `skillet replay`, `skillet edit` and tests.
// Must not know: anything of a vendor.
#pragma once

#include <string_view>

#include "npu/driver.h"

namespace skillet::npu {

// True for a field that was set for an earlier operation and is still in force: its words belong to that operation.
inline bool is_inherited(const AnnotatedField& field) { return field.row != nullptr && !field.place; }

// The words that a field was read from. Error if the submission does not have them.
Result<std::vector<uint32_t>> words_of(const AnnotatedField& field, const capture::Submission& submission);

// `path`: name from decode(), "job 1 nn_instruction.kernel_x_size". `text`: a number in any C base, true or false, or
// an enum's name. Error if no field of that name can be set, or the value does not fit; it lists the nearest names.
Result<void> set_field(const Driver& driver, const Chip& chip, capture::Submission& submission, std::string_view path,
                       std::string_view text);

// A field and its value, in the form for set_field().
struct FieldValue {
  std::string path, text;
};
// All fields with named bits that can be set; the first of several with the same path.
Result<std::vector<FieldValue>> field_values(const Driver& driver, const Chip& chip,
                                             const capture::Submission& submission);
// Sets many fields, by their names before any is set. `at`: number of fields set before an error.
Result<void> set_fields(const Driver& driver, const Chip& chip, capture::Submission& submission,
                        std::span<const FieldValue> values, size_t& at);

// True if the submission has such a field for set_field(), for any value.
bool has_field(const Driver& driver, const Chip& chip, const capture::Submission& submission, std::string_view path);

}  // namespace skillet::npu
