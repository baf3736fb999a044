#include "tools/run/found_print.h"

#include <nlohmann/json.hpp>

#include "tools/show/paint.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

std::string print_boxes(const Found& found) {
  TextTable table({"class", "score", "left", "top", "right", "bottom", "label"});
  for (const Detection& one : found.detections)
    table.add({fmt::format("{}", one.what.index), fmt::format("{:.4f}", one.what.score),
               fmt::format("{:.3f}", one.box.left), fmt::format("{:.3f}", one.box.top),
               fmt::format("{:.3f}", one.box.right), fmt::format("{:.3f}", one.box.bottom), one.what.label});
  return fmt::format("found {} (0 to 1 across the picture)\n{}", found.detections.size(),
                     found.detections.empty() ? "" : table.print());
}

std::string print_mask(const Mask& mask) {
  TextTable table({"class", "pixels", "label"});
  for (const TopClass& one : mask.present)
    table.add({fmt::format("{}", one.index), fmt::format("{:.2f} %", 100 * one.score), one.label});
  return fmt::format("found a mask of {} x {}\n{}", mask.width, mask.height, table.print());
}

std::string print_poses(const Found& found) {
  std::string out;
  for (const Pose& pose : found.poses) {
    TextTable table({"key point", "x", "y", "score"});
    for (size_t i = 0; i < pose.points.size(); ++i)
      table.add({std::string(kKeyPointNames[i]), fmt::format("{:.3f}", pose.points[i].x),
                 fmt::format("{:.3f}", pose.points[i].y), fmt::format("{:.3f}", pose.points[i].score)});
    out += fmt::format("found a person (0 to 1 across the picture)\n{}", table.print());
  }
  return out.empty() ? "found nobody\n" : out;
}

nlohmann::json class_json(const TopClass& top) {
  return {{"class", top.index}, {"score", top.score}, {"label", top.label}};
}

}  // namespace

std::string print_found(const Found& found) {
  if (found.mask) return print_mask(*found.mask);
  if (found.task == Task::pose) return print_poses(found);
  return found.task == Task::classes ? "" : print_boxes(found);
}

nlohmann::json found_json(const Found& found) {
  nlohmann::json out = {{"task", kTaskNames[static_cast<size_t>(found.task)]}};
  for (const TopClass& one : found.classes) out["classes"].push_back(class_json(one));
  if (found.mask) {
    for (const TopClass& one : found.mask->present) out["classes"].push_back(class_json(one));
  } else if (found.task == Task::pose) {
    out["poses"] = nlohmann::json::array();
    for (const Pose& pose : found.poses) {
      nlohmann::json points = nlohmann::json::array();
      for (size_t i = 0; i < pose.points.size(); ++i)
        points.push_back({{"name", kKeyPointNames[i]},
                          {"x", pose.points[i].x},
                          {"y", pose.points[i].y},
                          {"score", pose.points[i].score}});
      out["poses"].push_back(std::move(points));
    }
  } else if (found.task != Task::classes) {
    out["boxes"] = nlohmann::json::array();
    for (const Detection& one : found.detections) {
      nlohmann::json row = class_json(one.what);
      row["box"] = {one.box.left, one.box.top, one.box.right, one.box.bottom};
      out["boxes"].push_back(std::move(row));
    }
  }
  return out;
}

std::string summary(const Found& found) {
  constexpr size_t kMost = 5;
  std::string out;
  const auto add = [&](std::string_view text) { out += fmt::format("{}{}", out.empty() ? "" : ", ", text); };
  for (const TopClass& one : found.classes) {
    if (out.empty()) add(caption_of(one));
  }
  for (size_t i = 0; i < std::min(kMost, found.detections.size()); ++i) add(caption_of(found.detections[i].what));
  if (found.detections.size() > kMost) add(fmt::format("{} more", found.detections.size() - kMost));
  if (found.mask) {
    for (size_t i = 0; i < std::min(kMost, found.mask->present.size()); ++i) add(caption_of(found.mask->present[i]));
  }
  if (found.task == Task::pose)
    add(found.poses.size() == 1 ? "a person" : fmt::format("{} people", found.poses.size()));
  return out.empty() ? "nothing" : out;
}

}  // namespace skillet::tools
