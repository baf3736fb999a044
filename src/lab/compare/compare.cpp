#include "lab/compare/compare.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/align.h"
#include "lab/compare/buffer_match.h"
#include "lab/compare/field_edit.h"
#include "npu/decoded_capture.h"

namespace skillet::npu {
namespace {

std::string printed(const AnnotatedField& field) {
  return field.raw.empty() || field.raw == field.value ? field.value : fmt::format("{} ({})", field.value, field.raw);
}

// One side while it is read for the second time.
class Walk {
 public:
  Walk(const Driver& driver, const Chip& chip, capture::Reader& reader)
      : driver_(driver), chip_(chip), reader_(reader) {
    reader_.rewind();
  }
  // Reads and decodes the next submission.
  Result<void> step() {
    SK_TRY_ASSIGN(std::optional<capture::Submission> one, reader_.next());
    if (!one) return error(ErrorCode::io, "was shortened while it was read");
    submission = std::move(*one);
    SK_TRY_ASSIGN(decoded, driver_.decode(chip_, submission));
    return {};
  }
  size_t index() const { return reader_.index(); }

  capture::Submission submission;
  Annotated decoded;

 private:
  const Driver& driver_;
  const Chip& chip_;
  capture::Reader& reader_;
};

class Comparison {
 public:
  Comparison(const Outline& a, const Outline& b, const ComparedSide& side_a, const ComparedSide& side_b)
      : a_(a),
        b_(b),
        side_a_(side_a),
        side_b_(side_b),
        match_(a, b, side_a.exact_sizes, side_b.exact_sizes, side_b.is_of_hardware && !side_a.is_of_hardware) {}

  Result<CaptureComparison> run(Walk a, Walk b) {
    for (const AlignedPair& pair : align_submissions(texts_of(a_), texts_of(b_))) {
      if (pair.a) SK_TRY(a.step().with_context("a"));
      if (pair.b) SK_TRY(b.step().with_context("b"));
      submission(pair.a ? &a : nullptr, pair.b ? &b : nullptr);
    }
    tensors();
    out_.memory = match_.matched_memory();
    return std::move(out_);
  }

 private:
  static std::vector<std::string> texts_of(const Outline& outline) {
    std::vector<std::string> texts;
    for (const auto& one : outline.operations) texts.push_back(fmt::format("{}", fmt::join(one, " ")));
    return texts;
  }

  // Aligns submissions by their operations. Neighbours that remain unpaired on both sides are paired in order.
  static std::vector<AlignedPair> align_submissions(const std::vector<std::string>& a,
                                                    const std::vector<std::string>& b) {
    std::vector<AlignedPair> pairs = align(a, b), merged;
    for (const AlignedPair& pair : pairs) {
      if (!merged.empty() && !merged.back().a && pair.a && !pair.b)
        merged.back().a = pair.a;
      else if (!merged.empty() && !merged.back().b && pair.b && !pair.a)
        merged.back().b = pair.b;
      else
        merged.push_back(pair);
    }
    return merged;
  }

  void add(DifferenceKind kind, std::string path, std::string a, std::string b) {
    out_.differences.push_back({kind, at_, std::move(path), std::move(a), std::move(b)});
  }

  // Compares a pair; null if the other side has no counterpart.
  void submission(const Walk* a, const Walk* b) {
    at_ = (a != nullptr ? a : b)->index();
    if (a == nullptr || b == nullptr) {
      const std::string what =
          fmt::format("operations: {}", fmt::join((a != nullptr ? a : b)->decoded.operations, " "));
      add(DifferenceKind::job, "submission", a != nullptr ? what : "", a != nullptr ? "" : what);
      return;
    }
    match_.start(a->submission, b->submission);
    parameters(a->submission, b->submission);
    const size_t before = out_.differences.size();
    operations(a->decoded, b->decoded);
    for (BufferMatch::Finding& f : match_.lists()) add(DifferenceKind::job, std::move(f.what), f.a, f.b);
    out_.jobs.push_back(fmt::format("submission {}: {} operations, {} in b; {} differences", at_,
                                    a->decoded.operations.size(), b->decoded.operations.size(),
                                    out_.differences.size() - before));
  }

  void parameters(const capture::Submission& a, const capture::Submission& b) {
    std::map<std::string, std::pair<std::string, std::string>> values;
    for (const capture::Parameter& p : a.parameters) values[p.name].first = fmt::format("{}", p.value);
    for (const capture::Parameter& p : b.parameters) values[p.name].second = fmt::format("{}", p.value);
    for (const auto& [name, sides] : values) {
      if (sides.first != sides.second)
        add(DifferenceKind::job, name, sides.first.empty() ? "as usual" : sides.first,
            sides.second.empty() ? "as usual" : sides.second);
    }
  }

  void operations(const Annotated& a, const Annotated& b) {
    const auto fields_a = by_operation(a), fields_b = by_operation(b);
    std::vector<std::string> names_a = a.operations, names_b = b.operations;
    names_a.emplace_back();  // for fields after the last operation
    names_b.emplace_back();
    if (names_a != names_b)
      add(DifferenceKind::job, "operations", fmt::format("{}", fmt::join(a.operations, " ")),
          fmt::format("{}", fmt::join(b.operations, " ")));
    for (const AlignedPair& pair : align(names_a, names_b)) {
      if (pair.a && pair.b)
        fields(fields_a[*pair.a], fields_b[*pair.b]);
      else
        add(DifferenceKind::job, "operation", pair.a ? fmt::format("{} {}", *pair.a, names_a[*pair.a]) : "",
            pair.b ? fmt::format("{} {}", *pair.b, names_b[*pair.b]) : "");
    }
  }

  using Fields = std::vector<const AnnotatedField*>;
  static std::vector<Fields> by_operation(const Annotated& submission) {
    std::vector<Fields> out(submission.operations.size() + 1);
    for (const AnnotatedField& field : submission.fields) {
      if (!is_inherited(field)) out[field.operation].push_back(&field);
    }
    return out;
  }

  void fields(const Fields& a, const Fields& b) {
    std::vector<std::string_view> names_a, names_b;
    for (const AnnotatedField* field : a) names_a.push_back(field->name);
    for (const AnnotatedField* field : b) names_b.push_back(field->name);
    for (const AlignedPair& pair : names_a == names_b ? one_by_one(a.size()) : align(names_a, names_b)) {
      if (pair.a && pair.b)
        field(*a[*pair.a], *b[*pair.b]);
      else if (pair.a)
        add(DifferenceKind::field, a[*pair.a]->path, printed(*a[*pair.a]), "");
      else
        add(DifferenceKind::field, b[*pair.b]->path, "", printed(*b[*pair.b]));
    }
  }
  static std::vector<AlignedPair> one_by_one(size_t count) {
    std::vector<AlignedPair> pairs(count);
    for (size_t i = 0; i < count; ++i) pairs[i] = {i, i};
    return pairs;
  }

  void field(const AnnotatedField& a, const AnnotatedField& b) {
    if (a.kind == FieldKind::value || b.kind != a.kind) {
      if (a.kind != b.kind || a.raw != b.raw) add(DifferenceKind::field, a.path, printed(a), printed(b));
      return;
    }
    if (const auto finding = match_.address(a, b))
      add(a.kind == FieldKind::memory ? DifferenceKind::field : DifferenceKind::bytes, a.path + finding->what,
          finding->a, finding->b);
  }

  // A tensor that both sides name must be the same memory.
  void tensors() {
    for (const KnownTensor& a : side_a_.tensors) {
      const auto b = std::ranges::find(side_b_.tensors, a.name, &KnownTensor::name);
      if (b == side_b_.tensors.end()) {
        add(DifferenceKind::job, a.name, fmt::format("buffer {} + {}", a.handle, a.offset_bytes), "");
      } else if (!match_.same_place(a.handle, a.offset_bytes, b->handle, b->offset_bytes)) {
        add(DifferenceKind::job, a.name, fmt::format("buffer {} + {}", a.handle, a.offset_bytes),
            fmt::format("buffer {} + {}", b->handle, b->offset_bytes));
      } else if (!a.layout.empty() && !b->layout.empty() && a.layout != b->layout) {
        add(DifferenceKind::job, a.name, a.layout, b->layout);
      }
    }
    for (const KnownTensor& b : side_b_.tensors) {
      if (std::ranges::find(side_a_.tensors, b.name, &KnownTensor::name) == side_a_.tensors.end())
        add(DifferenceKind::job, b.name, "", fmt::format("buffer {} + {}", b.handle, b.offset_bytes));
    }
  }

  const Outline& a_;
  const Outline& b_;
  const ComparedSide& side_a_;
  const ComparedSide& side_b_;
  BufferMatch match_;
  CaptureComparison out_;
  size_t at_ = 0;
};

}  // namespace

size_t CaptureComparison::count(DifferenceKind kind) const {
  return static_cast<size_t>(std::ranges::count(differences, kind, &Difference::kind));
}

Result<CaptureComparison> compare(const Driver& driver, const Chip& chip, ComparedSide a, ComparedSide b) {
  SK_TRY_ASSIGN(const Outline outline_a, outline_of(driver, chip, a.reader).with_context("a"));
  SK_TRY_ASSIGN(const Outline outline_b, outline_of(driver, chip, b.reader).with_context("b"));
  Comparison comparison(outline_a, outline_b, a, b);
  return comparison.run({driver, chip, a.reader}, {driver, chip, b.reader});
}

}  // namespace skillet::npu
