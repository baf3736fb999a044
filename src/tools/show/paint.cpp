#include "tools/show/paint.h"

#include <fmt/format.h>

#include "tools/show/canvas.h"

namespace skillet::tools {
namespace {

// Lines and letters scale with the picture.
int scale_of(const Picture& picture) { return std::clamp(std::max(picture.width_px, picture.height_px) / 256, 1, 4); }

Point on(const Picture& picture, double x, double y) {
  return {std::clamp(x, 0.0, 1.0) * picture.width_px, std::clamp(y, 0.0, 1.0) * picture.height_px};
}

// + 1 because class 0 of a detector is not the background.
Colour box_colour(const TopClass& what) { return class_colour(static_cast<size_t>(what.index) + 1); }

void paint_classes(Picture& picture, const Found& found) {
  const int scale = scale_of(picture);
  for (size_t i = 0; i < found.classes.size(); ++i)
    caption(picture, {0, static_cast<double>(i) * caption_height_px(scale)}, caption_of(found.classes[i]), {0, 0, 0},
            scale);
}

void paint_boxes(Picture& picture, const Found& found) {
  const int scale = scale_of(picture);
  for (const Detection& one : found.detections)
    outline(picture, on(picture, one.box.left, one.box.top), on(picture, one.box.right, one.box.bottom),
            box_colour(one.what), 2 * scale);
  for (const Detection& one : found.detections)  // on top of all boxes
    caption(picture, on(picture, one.box.left, one.box.top), caption_of(one.what), box_colour(one.what), scale);
}

void paint_mask(Picture& picture, const Mask& mask) {
  constexpr double kOpacity = 0.6;
  for (int y = 0; y < picture.height_px; ++y) {
    const auto row = static_cast<size_t>(int64_t{y} * mask.height / picture.height_px);
    for (int x = 0; x < picture.width_px; ++x) {
      const auto column = static_cast<size_t>(int64_t{x} * mask.width / picture.width_px);
      const size_t what = mask.classes[row * static_cast<size_t>(mask.width) + column];
      if (what != 0) blend(picture, x, y, class_colour(what), kOpacity);
    }
  }
  const int scale = scale_of(picture);
  double y = 0;
  for (const TopClass& one : mask.present) {
    const std::string name = one.label.empty() ? fmt::format("class {}", one.index) : one.label;
    caption(picture, {0, y}, fmt::format("{} {:.1f} %", name, 100 * one.score),
            class_colour(static_cast<size_t>(one.index)), scale);
    y += caption_height_px(scale);
    if (y + caption_height_px(scale) > picture.height_px) break;
  }
}

// Key points that a bone joins: indices in kKeyPointNames. Order: left, right, both sides.
struct Bone {
  size_t from, to;
  Colour colour;
};
constexpr Colour kLeft{0, 200, 255}, kRight{255, 120, 0}, kMiddle{240, 240, 0};
constexpr Bone kBones[] = {{0, 1, kLeft},    {1, 3, kLeft},   {5, 7, kLeft},   {7, 9, kLeft},
                           {11, 13, kLeft},  {13, 15, kLeft}, {5, 11, kLeft},  {0, 2, kRight},
                           {2, 4, kRight},   {6, 8, kRight},  {8, 10, kRight}, {12, 14, kRight},
                           {14, 16, kRight}, {6, 12, kRight}, {5, 6, kMiddle}, {11, 12, kMiddle}};

void paint_pose(Picture& picture, const Pose& pose, double threshold) {
  const int scale = scale_of(picture);
  const auto is_seen = [&](size_t i) { return pose.points[i].score >= threshold; };
  const auto at = [&](size_t i) { return on(picture, pose.points[i].x, pose.points[i].y); };
  for (const Bone& bone : kBones) {
    if (is_seen(bone.from) && is_seen(bone.to)) line(picture, at(bone.from), at(bone.to), bone.colour, 2 * scale);
  }
  for (size_t i = 0; i < pose.points.size(); ++i) {
    if (is_seen(i)) disc(picture, at(i), 2.5 * scale, {255, 255, 255});
  }
}

}  // namespace

std::string caption_of(const TopClass& top) {
  const std::string name = top.label.empty() ? fmt::format("class {}", top.index) : top.label;
  return fmt::format("{} ({:.2f})", name, top.score);
}

void paint(Picture& picture, const Found& found, std::optional<double> threshold) {
  paint_classes(picture, found);
  paint_boxes(picture, found);
  if (found.mask) paint_mask(picture, *found.mask);
  for (const Pose& pose : found.poses) paint_pose(picture, pose, threshold.value_or(default_threshold(Task::pose)));
}

}  // namespace skillet::tools
