#include "base/testing/trace_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>

#include "base/text.h"

namespace skillet {
namespace {

using protozero::pbf_reader;

constexpr size_t kMostNs = size_t{1} << 62;
constexpr size_t kMostDepth = 1000;
enum Type : uint32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

struct Raw {
  int64_t at_ns = 0;
  uint64_t track = 0;
  uint32_t type = 0;
  std::string name, category;
  double value = 0;
};

// Protozero only asserts that a field is of the type that it is read as.
struct OtherType : protozero::exception {
  const char* what() const noexcept override { return "a field has another type"; }
};
void expect(const pbf_reader& at, protozero::pbf_wire_type type) {
  if (at.wire_type() != type) throw OtherType();
}
pbf_reader message(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::length_delimited);
  return at.get_message();
}
std::string text(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::length_delimited);
  return printable(at.get_string());
}
uint64_t number(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::varint);
  return at.get_uint64();
}
double real(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::fixed64);
  return at.get_double();
}

class Reader {
 public:
  Result<Trace> run(std::span<const uint8_t> file) {
    pbf_reader packets(reinterpret_cast<const char*>(file.data()), file.size());
    while (const std::optional<pbf_reader> packet = next_packet(packets)) read_packet(*packet);
    if (raw_.empty()) return error(ErrorCode::malformed, "it is no trace, or one without track events");
    std::ranges::stable_sort(raw_, {}, &Raw::at_ns);
    out_.begin_ns = raw_.front().at_ns;
    out_.end_ns = raw_.back().at_ns;
    for (Raw& one : raw_) SK_TRY(add(one));
    for (auto& [track, open] : open_) {
      while (!open.empty()) close(open, out_.end_ns, true);
    }
    return std::move(out_);
  }

 private:
  // None: the file was read to its end, or to an incomplete packet, as in a copy of a growing file.
  std::optional<pbf_reader> next_packet(pbf_reader& packets) {
    try {
      if (packets.next(1)) return message(packets);
    } catch (const protozero::end_of_buffer_exception&) {
      out_.is_cut = true;
    }
    return std::nullopt;
  }

  using Names = std::map<std::pair<uint64_t, uint64_t>, std::string>;  // by sequence and number

  void read_packet(pbf_reader packet) {
    uint64_t at_ns = 0, sequence = 0;
    std::vector<pbf_reader> events, interned;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8: at_ns = number(packet); break;
        case 10: sequence = number(packet); break;
        case 11: events.push_back(message(packet)); break;
        case 12: interned.push_back(message(packet)); break;
        case 60: read_track(message(packet)); break;
        default: packet.skip();
      }
    }
    for (const pbf_reader& one : interned) read_interned(one, sequence);
    for (const pbf_reader& one : events) read_event(one, sequence, std::min<uint64_t>(at_ns, kMostNs));
  }

  void read_interned(pbf_reader from, uint64_t sequence) {
    while (from.next()) {
      if (from.tag() != 1 && from.tag() != 2) {
        from.skip();
        continue;
      }
      Names& names = from.tag() == 1 ? categories_ : names_;
      pbf_reader entry = message(from);
      uint64_t id = 0;
      std::string name;
      while (entry.next()) {
        if (entry.tag() == 1)
          id = number(entry);
        else if (entry.tag() == 2)
          name = text(entry);
        else
          entry.skip();
      }
      names[{sequence, id}] = std::move(name);
    }
  }

  void read_track(pbf_reader from) {
    uint64_t uuid = 0;
    TraceTrack track;
    while (from.next()) {
      switch (from.tag()) {
        case 1: uuid = number(from); break;
        case 2: track.name = text(from); break;
        case 4: read_thread(message(from), track); break;
        default: from.skip();
      }
    }
    out_.tracks[track_of(uuid)] = std::move(track);
  }

  static void read_thread(pbf_reader from, TraceTrack& track) {
    track.is_thread = true;
    while (from.next()) {
      if (from.tag() == 5)
        track.name = "thread " + text(from);
      else
        from.skip();
    }
  }

  void read_event(pbf_reader from, uint64_t sequence, uint64_t at_ns) {
    Raw event{.at_ns = static_cast<int64_t>(at_ns)};
    while (from.next()) {
      switch (from.tag()) {
        case 3: event.category = categories_[{sequence, number(from)}]; break;
        case 9: event.type = static_cast<uint32_t>(number(from)); break;
        case 10: event.name = names_[{sequence, number(from)}]; break;
        case 11: event.track = number(from); break;
        case 23: event.name = text(from); break;
        case 30: event.value = static_cast<double>(number(from)); break;
        case 44: event.value = real(from); break;
        default: from.skip();
      }
    }
    raw_.push_back(std::move(event));
  }

  size_t track_of(uint64_t uuid) {
    const auto [found, is_new] = tracks_.try_emplace(uuid, out_.tracks.size());
    if (is_new) out_.tracks.push_back({.name = fmt::format("track {}", uuid)});
    return found->second;
  }

  Result<void> add(Raw& one) {
    const size_t track = track_of(one.track);
    std::vector<size_t>& open = open_[track];
    if (one.type == kInstant) ++out_.instants;
    if (one.type == kCounter) out_.samples.push_back({track, one.at_ns, std::isfinite(one.value) ? one.value : 0});
    if (one.type == kEnd && !open.empty()) close(open, one.at_ns, false);
    if (one.type != kBegin) return {};
    if (open.size() == kMostDepth)
      return error(ErrorCode::malformed, "{}: more than {} slices are open at once", out_.tracks[track].name,
                   kMostDepth);
    open.push_back(out_.slices.size());
    out_.slices.push_back({.track = track,
                           .category = std::move(one.category),
                           .name = std::move(one.name),
                           .begin_ns = one.at_ns,
                           .depth = open.size() - 1});
    return {};
  }

  void close(std::vector<size_t>& open, int64_t at_ns, bool is_open) {
    TraceSlice& slice = out_.slices[open.back()];
    open.pop_back();
    slice.end_ns = at_ns;
    slice.own_ns += slice.ns();
    slice.is_open = is_open;
    if (!open.empty()) out_.slices[open.back()].own_ns -= slice.ns();
  }

  Trace out_;
  std::vector<Raw> raw_;
  Names names_, categories_;
  std::map<uint64_t, size_t> tracks_;
  std::map<size_t, std::vector<size_t>> open_;
};

}  // namespace

Result<Trace> read_trace(std::span<const uint8_t> file) {
  try {
    return Reader().run(file);
  } catch (const protozero::exception& thrown) {
    return error(ErrorCode::malformed, "it is no trace: {}", thrown.what());
  }
}

}  // namespace skillet
