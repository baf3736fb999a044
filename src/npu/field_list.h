// FieldList: collects the fields of a submission for a decoder, with or without text.
// Called by decode() of the drivers.
// Must not know: a vendor's descriptors.
#pragma once

#include <utility>

#include "npu/driver.h"

namespace skillet::npu {

// True if the row defines the value: it is the required constant, or has a name.
inline bool has_meaning(const bits::Row& row, const bits::Value& value) {
  if (row.codec.kind == bits::CodecKind::always) return value.integer == row.codec.argument;
  return row.kind != bits::ValueKind::enumeration || row.names.find(value.integer) != nullptr;
}

class FieldList {
 public:
  explicit FieldList(Detail detail) : full_(detail == Detail::full), judges_(detail != Detail::places) {}

  bool full() const { return full_; }
  // True if reach and refusals are requested.
  bool judges() const { return judges_; }
  Annotated& out() { return out_; }
  // Keeps only the first reason.
  void refuse(std::string what) {
    if (out_.refused.empty()) out_.refused = std::move(what);
  }

  // `number`: the bits, and which field it is if `facts` do not show it. `describe` sets path, name, value and raw.
  template <typename Describe>
  void add(FieldFacts facts, uint64_t number, const Describe& describe) {
    if (!full_ && facts.kind == FieldKind::value && !facts.unknown) {
      out_.values.push_back(number);
      return;
    }
    AnnotatedField& field = out_.fields.emplace_back();
    static_cast<FieldFacts&>(field) = std::move(facts);
    field.operation = out_.operations.size();
    if (full_) describe(field);
  }

 private:
  bool full_, judges_;
  Annotated out_;
};

}  // namespace skillet::npu
