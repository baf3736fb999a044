// The two ways to walk a TP job. Specification 5.2 defines the order of the input and the loops of the output.
#include <algorithm>

#include "npus/vivante/sim/tp_job.h"

namespace skillet::sim::vivante {
namespace {

Error outside(uint64_t offset, size_t size) {
  return error(ErrorCode::device,
               "tp_instruction.out_base_address: an element goes to byte {} after it, but only {} are mapped", offset,
               size);
}

// Seven counters, the innermost first.
class Odometer {
 public:
  explicit Odometer(const TpJob& job) : job_(job) {}

  uint64_t address() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < counter_.size(); ++i) sum += counter_[i] * job_.increment[i];
    return sum;
  }
  uint64_t counter(size_t loop) const { return counter_[loop]; }
  // Steps until the loop wraps; a loop without a count never does.
  uint64_t left(size_t loop) const { return job_.count[loop] == 0 ? UINT64_MAX : job_.count[loop] - counter_[loop]; }

  // Adds `steps` <= left(loop) to one counter; when it is complete, clears it and carries into the next.
  void advance(size_t loop, uint64_t steps = 1) {
    counter_[loop] += steps;
    while (loop < job_.count.size() && job_.count[loop] != 0 && counter_[loop] == job_.count[loop]) {
      counter_[loop] = 0;
      counter_[++loop] += 1;
    }
  }

  void end_of_row() { finish(1, job_.loop_1_reset); }
  void end_of_tile() { finish(2, job_.loop_2_reset); }
  void end_of_slice() { finish(3, job_.loop_3_reset); }

 private:
  // Ends loops 0..last, unless they just wrapped by themselves.
  void finish(size_t last, bool enabled) {
    const auto end = counter_.begin() + static_cast<ptrdiff_t>(last) + 1;
    if (!enabled || std::all_of(counter_.begin(), end, [](uint64_t c) { return c == 0; })) return;
    std::fill(counter_.begin(), end, 0);
    advance(last + 1);
  }

  const TpJob& job_;
  std::array<uint64_t, 7> counter_{};
};

// Calls row(x0, x1, y, z), inclusive, for each row of each tile, and the three events, in the order of the hardware.
template <typename Row, typename Events>
Result<void> walk(const TpJob& job, Row row, Events& events) {
  for (int64_t z = job.z_first; z <= job.z_last; ++z) {
    for (int64_t tile_y = job.window_y0; tile_y <= job.window_y1; tile_y += job.tile_y_inc) {
      for (int64_t tile_x = job.window_x0; tile_x <= job.window_x1; tile_x += job.tile_x_inc) {
        const int64_t y1 = std::min(tile_y + job.tile_height - 1, job.window_y1);
        const int64_t x1 = std::min(tile_x + job.tile_width - 1, job.window_x1);
        for (int64_t y = tile_y; y <= y1; ++y) {
          SK_TRY(row(tile_x, x1, y, z));
          events.end_of_row();
        }
        events.end_of_tile();
      }
    }
    events.end_of_slice();
  }
  return {};
}

bool inside(const TpJob& job, int64_t x, int64_t y, int64_t z) {
  return x >= 0 && y >= 0 && z >= 0 && x < job.width && y < job.height && z < job.planes;
}

// ---- runs ----

// Elements that follow each other in the walk: in[0], in[step], in[2 * step], ...; null: border.
struct Run {
  const uint8_t* in = nullptr;
  int64_t step = 1;
  uint64_t length = 0;
};

class RunWriter {
 public:
  RunWriter(const TpJob& job, std::span<uint8_t> out) : job_(job), out_(out), odometer_(job) {}

  Odometer& odometer() { return odometer_; }
  uint64_t extent() const { return extent_; }

  Result<void> write(Run run) {
    while (run.length > 0) {
      const uint64_t rounds = rounds_of_loop_1(run);
      SK_TRY(rounds > 0 ? along_loop_1(run, rounds) : along_loop_0(run));
    }
    return {};
  }

 private:
  uint8_t at(const Run& run, uint64_t i) const {
    return run.in == nullptr ? job_.border : job_.value[run.in[static_cast<int64_t>(i) * run.step]];
  }

  // How often the whole of loop 0 can run at once. The loops must be at their start, and writing all first elements,
  // then all second ones, must give the same result as the right order (no address twice).
  uint64_t rounds_of_loop_1(const Run& run) const {
    const uint64_t count = job_.count[0];
    if (count == 0 || count > 4 || odometer_.counter(0) != 0) return 0;
    const uint64_t rounds = std::min(run.length / count, odometer_.left(1));
    const bool apart = job_.increment[1] > 0 && job_.increment[0] >= rounds * job_.increment[1];
    return count == 1 || apart ? rounds : 0;
  }

  Result<void> along_loop_1(Run& run, uint64_t rounds) {
    const uint64_t count = job_.count[0], step0 = job_.increment[0], step1 = job_.increment[1];
    const uint64_t base = odometer_.address();
    SK_TRY(check(base + (count - 1) * step0 + (rounds - 1) * step1));
    for (uint64_t first = 0; first < count; ++first) {
      uint8_t* to = out_.data() + base + first * step0;
      for (uint64_t i = 0; i < rounds; ++i) to[i * step1] = at(run, first + i * count);
    }
    odometer_.advance(1, rounds);
    consume(run, rounds * count);
    return {};
  }

  Result<void> along_loop_0(Run& run) {
    const uint64_t length = std::min(run.length, odometer_.left(0)), step0 = job_.increment[0];
    const uint64_t base = odometer_.address();
    SK_TRY(check(base + (length - 1) * step0));
    for (uint64_t i = 0; i < length; ++i) out_[base + i * step0] = at(run, i);
    odometer_.advance(0, length);
    consume(run, length);
    return {};
  }

  // Checks `last`, the farthest address of a run, before it is written.
  Result<void> check(uint64_t last) {
    if (last >= out_.size()) return outside(last, out_.size());
    extent_ = std::max(extent_, last + 1);
    return {};
  }

  static void consume(Run& run, uint64_t length) {
    if (run.in != nullptr) run.in += static_cast<int64_t>(length) * run.step;
    run.length -= length;
  }

  const TpJob& job_;
  std::span<uint8_t> out_;
  Odometer odometer_;
  uint64_t extent_ = 0;
};

// Elements (x, y)..(x + length - 1, y): border, inside, border.
Result<void> write_row(const TpJob& job, std::span<const uint8_t> in, int64_t x0, int64_t x1, int64_t y, int64_t z,
                       RunWriter& writer) {
  const bool row_inside = y >= 0 && z >= 0 && y < job.height && z < job.planes;
  const int64_t first = row_inside ? std::clamp<int64_t>(0, x0, x1 + 1) : x1 + 1;
  const int64_t end = row_inside ? std::clamp<int64_t>(job.width, first, x1 + 1) : x1 + 1;
  SK_TRY(writer.write({nullptr, 1, static_cast<uint64_t>(first - x0)}));
  if (end > first) {
    const int64_t at = z * job.slice + y * job.stride + first;
    SK_TRY(writer.write({in.data() + at, 1, static_cast<uint64_t>(end - first)}));
  }
  return writer.write({nullptr, 1, static_cast<uint64_t>(x1 + 1 - end)});
}

// One column of a tile, entirely inside the image.
Result<void> write_column(const TpJob& job, std::span<const uint8_t> in, int64_t x, int64_t y0, int64_t y1, int64_t z,
                          RunWriter& writer) {
  return writer.write(
      {in.data() + z * job.slice + y0 * job.stride + x, job.stride, static_cast<uint64_t>(y1 - y0 + 1)});
}

bool window_inside(const TpJob& job) {
  return inside(job, job.window_x0, job.window_y0, job.z_first) &&
         inside(job, job.window_x1, job.window_y1, job.z_last);
}

// Tiles one element wide, as in transposing jobs: a column is one run.
Result<void> rearrange_columns(const TpJob& job, std::span<const uint8_t> in, RunWriter& writer) {
  for (int64_t z = job.z_first; z <= job.z_last; ++z) {
    for (int64_t tile_y = job.window_y0; tile_y <= job.window_y1; tile_y += job.tile_y_inc) {
      const int64_t y1 = std::min(tile_y + job.tile_height - 1, job.window_y1);
      for (int64_t x = job.window_x0; x <= job.window_x1; x += job.tile_x_inc) {
        SK_TRY(write_column(job, in, x, tile_y, y1, z, writer));
        writer.odometer().end_of_tile();
      }
    }
    writer.odometer().end_of_slice();
  }
  return {};
}

int64_t covered(int64_t first, int64_t last, int64_t size, int64_t step) {
  int64_t sum = 0;
  for (int64_t at = first; at <= last; at += step) sum += std::min(size, last - at + 1);
  return sum;
}

}  // namespace

TpJob walk_of(const ::skillet::vivante::hw::TpInstruction& d) {
  TpJob job;
  job.width = d.in_x_size;
  job.height = d.in_y_size;
  job.planes = d.in_z_size;
  job.stride = d.in_stride;
  job.slice = d.in_slice;
  job.z_first = -int64_t{d.in_window_z_start_overfetch};
  job.z_last = job.planes - 1 + d.in_window_z_end_overfetch;
  job.window_x0 = d.in_window_x_start;
  job.window_y0 = d.in_window_y_start;
  job.window_x1 = d.in_window_x_end;
  job.window_y1 = d.in_window_y_end;
  job.tile_width = d.in_tile_x_size;
  job.tile_height = d.in_tile_y_size;
  job.tile_x_inc = d.in_tile_x_inc;
  job.tile_y_inc = d.in_tile_y_inc;
  job.increment = {d.out_loop_0_inc, d.out_loop_1_inc, d.out_loop_2_inc, d.out_loop_3_inc,
                   d.out_loop_4_inc, d.out_loop_5_inc, d.out_loop_6_inc};
  job.count = {d.out_loop_0_count, d.out_loop_1_count, d.out_loop_2_count,
               d.out_loop_3_count, d.out_loop_4_count, d.out_loop_5_count};
  job.loop_1_reset = d.out_loop_1_reset;
  job.loop_2_reset = d.out_loop_2_reset;
  job.loop_3_reset = d.out_loop_3_reset;
  return job;
}

int64_t TpJob::in_extent() const {
  const int64_t x = std::min(window_x1, width - 1), y = std::min(window_y1, height - 1),
                z = std::min(z_last, planes - 1);
  if (x < std::max<int64_t>(window_x0, 0) || y < std::max<int64_t>(window_y0, 0) || z < std::max<int64_t>(z_first, 0))
    return 0;
  return z * slice + y * stride + x + 1;
}

uint64_t TpJob::elements() const {
  const auto columns = static_cast<uint64_t>(covered(window_x0, window_x1, tile_width, tile_x_inc));
  const auto rows = static_cast<uint64_t>(covered(window_y0, window_y1, tile_height, tile_y_inc));
  const auto slices = static_cast<uint64_t>(z_last - z_first + 1);
  uint64_t product = 0;
  if (__builtin_mul_overflow(columns, rows, &product) || __builtin_mul_overflow(product, slices, &product))
    return UINT64_MAX;
  return product;
}

Result<uint64_t> rearrange_plain(const TpJob& job, std::span<const uint8_t> in, std::span<uint8_t> out) {
  Odometer odometer(job);
  uint64_t extent = 0;
  const auto row = [&](int64_t x0, int64_t x1, int64_t y, int64_t z) -> Result<void> {
    for (int64_t x = x0; x <= x1; ++x) {
      const uint64_t to = odometer.address();
      if (to >= out.size()) return outside(to, out.size());
      extent = std::max(extent, to + 1);
      const int64_t from = z * job.slice + y * job.stride + x;
      out[to] = inside(job, x, y, z) ? job.value[in[static_cast<size_t>(from)]] : job.border;
      odometer.advance(0);
    }
    return {};
  };
  SK_TRY(walk(job, row, odometer));
  return extent;
}

Result<uint64_t> rearrange_fast(const TpJob& job, std::span<const uint8_t> in, std::span<uint8_t> out) {
  RunWriter writer(job, out);
  TpJob merged = job;
  // 1x1 tiles side by side have the element order of one large tile.
  const bool single = job.tile_width == 1 && job.tile_height == 1 && job.tile_x_inc == 1 && job.tile_y_inc == 1;
  if (single && !job.loop_1_reset && !job.loop_2_reset) {
    merged.tile_width = merged.tile_x_inc = job.window_x1 - job.window_x0 + 1;
    merged.tile_height = merged.tile_y_inc = job.window_y1 - job.window_y0 + 1;
  } else if (job.tile_width == 1 && !job.loop_1_reset && window_inside(job)) {
    SK_TRY(rearrange_columns(job, in, writer));
    return writer.extent();
  }
  const auto row = [&](int64_t x0, int64_t x1, int64_t y, int64_t z) {
    return write_row(merged, in, x0, x1, y, z, writer);
  };
  SK_TRY(walk(merged, row, writer.odometer()));
  return writer.extent();
}

}  // namespace skillet::sim::vivante
