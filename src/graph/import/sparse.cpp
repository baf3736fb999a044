#include "graph/import/sparse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "graph/import/tables.h"

namespace skillet::tflite {
namespace {

constexpr size_t kMaxLevels = 32;

// One dimension of the stored order: all of its positions, or the listed ones.
struct Level {
  size_t dimension = 0;  // dimension of the shape or, from its rank on, of the block
  size_t size = 0;
  bool is_sparse = false;
  std::vector<size_t> segments, positions;  // position i is in segments[p] <= i < segments[p + 1] of its parent p
};

template <typename Vector>
std::vector<size_t> widened(const Vector* list) {
  if (list == nullptr || list->values() == nullptr) return {};
  return {list->values()->begin(), list->values()->end()};
}

std::vector<size_t> numbers(schema::SparseIndexVector type, const void* list) {
  switch (type) {
    case schema::SparseIndexVector::Int32Vector: return widened(static_cast<const schema::Int32Vector*>(list));
    case schema::SparseIndexVector::Uint16Vector: return widened(static_cast<const schema::Uint16Vector*>(list));
    case schema::SparseIndexVector::Uint8Vector: return widened(static_cast<const schema::Uint8Vector*>(list));
    default: return {};
  }
}

class Reader {
 public:
  Reader(const ir::Tensor& tensor, std::span<const uint8_t> stored)
      : shape_(tensor.shape), elem_bytes_(static_cast<size_t>(ir::dtype_bytes(tensor.dtype))), stored_(stored) {}

  Result<Bytes> read(const schema::SparsityParameters& how, size_t bytes_max) {
    SK_TRY(set_levels(how));
    SK_TRY(set_sizes());
    const size_t bytes = static_cast<size_t>(shape_.elems()) * elem_bytes_;
    if (elem_bytes_ == 0 || bytes > bytes_max)
      return error(ErrorCode::unsupported, "{} bytes without sparsity, at most {} are read", bytes, bytes_max);
    out_.assign(bytes, 0);
    position_.assign(levels_.size(), 0);
    SK_TRY(fill(0, 0));
    return std::move(out_);
  }

 private:
  size_t rank() const { return static_cast<size_t>(shape_.rank()); }

  Result<void> set_levels(const schema::SparsityParameters& how) {
    const size_t levels = rank() + count(how.block_map());
    if (levels > kMaxLevels || count(how.traversal_order()) != levels || count(how.dim_metadata()) != levels)
      return error(ErrorCode::malformed, "sparsity of {} dimensions in an order of {}, {} are needed",
                   count(how.dim_metadata()), count(how.traversal_order()), levels);
    std::vector<bool> seen(levels);
    for (size_t i = 0; i < levels; ++i) {
      const auto at = static_cast<flatbuffers::uoffset_t>(i);
      const int32_t dimension = how.traversal_order()->Get(at);
      if (dimension < 0 || static_cast<size_t>(dimension) >= levels || seen[static_cast<size_t>(dimension)])
        return error(ErrorCode::malformed, "sparsity with dimension {} out of order", dimension);
      seen[static_cast<size_t>(dimension)] = true;
      SK_TRY(add_level(static_cast<size_t>(dimension), *how.dim_metadata()->Get(at)));
    }
    for (size_t i = rank(); i < levels; ++i) {
      const int32_t blocked = how.block_map()->Get(static_cast<flatbuffers::uoffset_t>(i - rank()));
      if (blocked < 0 || static_cast<size_t>(blocked) >= rank())
        return error(ErrorCode::malformed, "blocks of dimension {}, which does not exist", blocked);
      block_of_.push_back(static_cast<size_t>(blocked));
    }
    return {};
  }

  Result<void> add_level(size_t dimension, const schema::DimensionMetadata& from) {
    Level level{.dimension = dimension, .is_sparse = from.format() == 1};
    if (from.format() > 1 || from.format() < 0)
      return error(ErrorCode::unsupported, "sparsity of kind {} is not known", int{from.format()});
    if (level.is_sparse) {
      level.segments = numbers(from.array_segments_type(), from.array_segments());
      level.positions = numbers(from.array_indices_type(), from.array_indices());
      if (!std::ranges::is_sorted(level.segments) ||
          (!level.segments.empty() && level.segments.back() > level.positions.size()))
        return error(ErrorCode::malformed, "sparsity whose segments are out of order");
    } else {
      level.size = static_cast<size_t>(std::max(from.dense_size(), 0));
    }
    levels_.push_back(std::move(level));
    return {};
  }

  const Level& level_of(size_t dimension) const { return *std::ranges::find(levels_, dimension, &Level::dimension); }

  // Computes the number of blocks in each dimension of the shape.
  Result<void> set_sizes() {
    std::vector<size_t> sizes(shape_.dims.begin(), shape_.dims.end());
    for (size_t i = 0; i < block_of_.size(); ++i) {
      const Level& block = level_of(rank() + i);
      size_t& size = sizes[block_of_[i]];
      if (block.is_sparse || block.size == 0 || size % block.size != 0)
        return error(ErrorCode::malformed, "blocks of {} in a dimension of {}", block.size, size);
      size /= block.size;
    }
    for (Level& level : levels_) {
      if (level.dimension >= rank()) continue;
      if (!level.is_sparse && level.size != sizes[level.dimension])
        return error(ErrorCode::malformed, "sparsity of {} rows in a dimension of {}", level.size,
                     sizes[level.dimension]);
      level.size = sizes[level.dimension];
    }
    return {};
  }

  // Fills the elements below entry `parent` of the level above. Each entry is visited once, as segments are in order.
  Result<void> fill(size_t depth, size_t parent) {
    if (depth == levels_.size()) return put(parent);
    const Level& level = levels_[depth];
    size_t first = parent * level.size, end = first + level.size;
    if (level.is_sparse) {
      if (parent + 1 >= level.segments.size()) return error(ErrorCode::malformed, "sparsity with too few segments");
      first = level.segments[parent], end = level.segments[parent + 1];
    }
    for (size_t i = first; i < end; ++i) {
      position_[depth] = level.is_sparse ? level.positions[i] : i - first;
      if (position_[depth] >= level.size)
        return error(ErrorCode::malformed, "sparsity names row {} of {}", position_[depth], level.size);
      SK_TRY(fill(depth + 1, i));
    }
    return {};
  }

  Result<void> put(size_t index) {
    if ((index + 1) * elem_bytes_ > stored_.size())
      return error(ErrorCode::malformed, "sparsity of more than the {} elements stored", stored_.size() / elem_bytes_);
    std::array<size_t, kMaxLevels> at{};
    for (size_t i = 0; i < levels_.size(); ++i) at[levels_[i].dimension] = position_[i];
    for (size_t i = 0; i < block_of_.size(); ++i) {
      size_t& row = at[block_of_[i]];
      row = row * level_of(rank() + i).size + at[rank() + i];
    }
    size_t to = 0;
    for (size_t i = 0; i < rank(); ++i) to = to * static_cast<size_t>(shape_[static_cast<int>(i)]) + at[i];
    std::memcpy(&out_[to * elem_bytes_], &stored_[index * elem_bytes_], elem_bytes_);
    return {};
  }

  const ir::Shape& shape_;
  size_t elem_bytes_;
  std::span<const uint8_t> stored_;
  std::vector<Level> levels_;
  std::vector<size_t> block_of_;  // the dimension that each block divides
  std::vector<size_t> position_;  // by level
  Bytes out_;
};

}  // namespace

Result<Bytes> dense_contents(const schema::SparsityParameters& how, const ir::Tensor& tensor,
                             std::span<const uint8_t> stored, size_t bytes_max) {
  return Reader(tensor, stored).read(how, bytes_max);
}

}  // namespace skillet::tflite
