// FieldList: the fields of a submission while a decoder reads them, with words or without.
// Called by decode() of the drivers.
// Must not know: a vendor's descriptors.
#pragma once

#include <utility>

#include "driver/driver.h"

namespace skillet::driver {

class FieldList {
 public:
  explicit FieldList(Detail detail) : full_(detail == Detail::full) {}

  bool full() const { return full_; }
  Annotated& out() { return out_; }

  // `number`: which field it is where `facts` do not tell, and its bits. `describe` sets path, name, value and raw.
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
  bool full_;
  Annotated out_;
};

}  // namespace skillet::driver
