// Pairs the buffers of two captures while their addresses are compared.
// Called by compare.cpp. Must not know: anything of a vendor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/compare/compare.h"
#include "npu/decoded_capture.h"

namespace skillet::npu {

class BufferMatch {
 public:
  // `exact`: sizes of that side's buffers are the requested ones, not rounded up by an allocator.
  // `b_is_hardware`: one buffer of b may correspond to several of a, and lists are not compared.
  BufferMatch(const Outline& a, const Outline& b, bool exact_a, bool exact_b, bool b_is_hardware = false)
      : a_(a), b_(b), exact_a_(exact_a), exact_b_(exact_b), b_is_hardware_(b_is_hardware) {}

  struct Finding {
    std::string what, a, b;
  };
  // Sets the submissions (borrowed) whose addresses are compared from now on.
  void start(const capture::Submission& a, const capture::Submission& b);
  // Returns nothing if both mean the same. Constants: the bytes are equal. Memory: whenever one side names a buffer,
  // the other names its counterpart, at the same distance, with the same room.
  std::optional<Finding> address(const AnnotatedField& a, const AnnotatedField& b);
  // Differences in the submissions' lists of the named buffers, and buffers that they list but do not name.
  std::vector<Finding> lists() const;
  std::vector<MatchedMemory> matched_memory() const;
  // True if an earlier address paired these places.
  bool same_place(uint32_t handle_a, uint64_t offset_a, uint32_t handle_b, uint64_t offset_b) const;

 private:
  struct Partner {
    uint32_t handle = 0;
    int64_t distance = 0;  // offset in a - offset in b
    bool operator==(const Partner&) const = default;
  };
  std::optional<Finding> constant(const AnnotatedField& a, BufferPlace at_a, BufferPlace at_b) const;
  std::optional<Finding> memory(const AnnotatedField& a, const AnnotatedField& b, const BufferPlace& at_a,
                                const BufferPlace& at_b);
  bool same_size(uint64_t a, uint64_t b, int64_t distance) const;
  std::optional<Finding> pair_up(const BufferPlace& at_a, const BufferPlace& at_b);

  const Outline& a_;
  const Outline& b_;
  const bool exact_a_, exact_b_, b_is_hardware_;
  const capture::Submission* now_a_ = nullptr;
  const capture::Submission* now_b_ = nullptr;
  std::map<uint32_t, Partner> partners_;           // memory, by handle in a
  std::map<uint32_t, uint32_t> partner_of_b_;      // memory: handle in b -> handle in a
  std::set<std::pair<uint32_t, uint32_t>> named_;  // handles that the two submissions named together
};

}  // namespace skillet::npu
