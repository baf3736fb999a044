#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "tools/time/trace_file.h"

namespace skillet::tools {
namespace {

constexpr double kWidth = 1200, kNames = 210, kLane = 18, kGap = 8, kTop = 28, kLeast = 0.4;  // px
constexpr size_t kMostTracks = 60;

struct Colour {
  std::string_view category, colour;
};
constexpr std::array kColours = {
    Colour{"session", "#9aa5b1"},   Colour{"compile", "#c9a227"},   Colour{"copy", "#5b8def"},
    Colour{"submit", "#8e6bbf"},    Colour{"wait", "#d8dee6"},      Colour{"cpu", "#4caf7d"},
    Colour{"npu", "#e0683c"},       Colour{"operation", "#f2a65a"}, Colour{"unit", "#c45b8a"},
    Colour{"simulator", "#e9d8a6"}, Colour{"kernel", "#777777"}};
std::string_view colour_of(std::string_view category) {
  const auto found = std::ranges::find(kColours, category, &Colour::category);
  return found == kColours.end() ? "#b0b0b0" : found->colour;
}

std::string escaped(std::string_view text) {
  const bool has_letters = is_utf8(text);  // else it was cut, or forged
  std::string out;
  for (const char c : text) {
    if (!has_letters && static_cast<unsigned char>(c) >= 0x80)
      out += '?';
    else if (c == '<' || c == '>' || c == '&' || c == '"')
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

struct Window {
  int64_t begin_ns = 0, end_ns = 0;

  double x(int64_t at_ns) const {
    const double share = static_cast<double>(std::clamp(at_ns, begin_ns, end_ns) - begin_ns) /
                         static_cast<double>(std::max<int64_t>(1, end_ns - begin_ns));
    return kNames + share * (kWidth - kNames - 10);
  }
  bool has(int64_t begin, int64_t end) const { return begin <= end_ns && end >= begin_ns; }
};

Window window_of(const Trace& trace) {
  Window out{trace.begin_ns, trace.end_ns};
  for (const TraceSlice& one : trace.slices) {
    if (one.category == "session" && one.name == "run" && !one.is_open) out = {one.begin_ns, one.end_ns};
  }
  return out;
}

// Those of one track, from `y` down.
class TrackPicture {
 public:
  TrackPicture(const Window& window, double y) : window_(window), y_(y) {}

  void add(const TraceSlice& slice) {
    const double x = window_.x(slice.begin_ns), width = window_.x(slice.end_ns) - x;
    double& until = until_[slice.depth];
    lanes_ = std::max(lanes_, slice.depth + 1);
    if (x + width < until + kLeast && width < kLeast) return;  // one there hides it
    until = x + width;
    const double y = y_ + static_cast<double>(slice.depth) * kLane;
    text += fmt::format(
        "<rect x='{:.1f}' y='{:.0f}' width='{:.1f}' height='{:.0f}' fill='{}'><title>{}: {:.1f} us</title></rect>\n", x,
        y, std::max(width, kLeast), kLane - 2, colour_of(slice.category), escaped(slice.name),
        static_cast<double>(slice.ns()) / 1e3);
    const auto fits = static_cast<size_t>(width / 6.2);
    if (fits > 3)
      text += fmt::format("<text x='{:.1f}' y='{:.0f}'>{}</text>\n", x + 3, y + 12,
                          escaped(slice.name.substr(0, fits - 1)));
  }
  void add(const std::vector<TraceSample>& samples) {
    double most = 1;
    for (const TraceSample& one : samples) most = std::max(most, one.value);
    for (size_t i = 0; i < samples.size(); ++i) {
      const double x = window_.x(samples[i].at_ns);
      const double end = i + 1 < samples.size() ? window_.x(samples[i + 1].at_ns) : window_.x(window_.end_ns);
      const double height = 2 * kLane * std::max(0.0, samples[i].value) / most;
      text += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='#7aa6c2'/>\n", x,
                          y_ + 2 * kLane - height, std::max(end - x, kLeast), height);
    }
    lanes_ = 2;
  }
  double end() const { return y_ + static_cast<double>(std::max<size_t>(lanes_, 1)) * kLane + kGap; }

  std::string text;

 private:
  Window window_;
  double y_;
  size_t lanes_ = 0;
  std::map<size_t, double> until_;  // by depth
};

}  // namespace

std::string draw_trace(const Trace& trace) {
  const Window window = window_of(trace);
  std::map<size_t, std::vector<const TraceSlice*>> slices;
  std::map<size_t, std::vector<TraceSample>> samples;
  for (const TraceSlice& one : trace.slices)
    if (window.has(one.begin_ns, one.end_ns)) slices[one.track].push_back(&one);
  for (const TraceSample& one : trace.samples)
    if (window.has(one.at_ns, one.at_ns)) samples[one.track].push_back(one);
  std::string body;
  double y = kTop;
  size_t drawn = 0;
  for (size_t track = 0; track < trace.tracks.size() && drawn < kMostTracks; ++track) {
    if (!slices.contains(track) && !samples.contains(track)) continue;
    ++drawn;
    TrackPicture picture(window, y);
    for (const TraceSlice* one : slices[track]) picture.add(*one);
    if (samples.contains(track)) picture.add(samples[track]);
    body += fmt::format("<text x='6' y='{:.0f}'>{}</text>\n{}", y + 12, escaped(trace.tracks[track].name.substr(0, 34)),
                        picture.text);
    y = picture.end();
  }
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 {0:.0f} {1:.0f}' "
      "font-family='sans-serif' font-size='11'>\n<rect width='100%' height='100%' fill='white'/>\n"
      "<text x='6' y='16'>{2:.3f} ms</text>\n{3}</svg>\n",
      kWidth, y + kGap, static_cast<double>(window.end_ns - window.begin_ns) / 1e6, body);
}

}  // namespace skillet::tools
