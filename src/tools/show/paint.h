// Draws results on a picture: captions, boxes with labels, masks, skeletons.
// Called by `skillet run`.
// Must not know: how results were found.
#pragma once

#include "tools/run/found.h"
#include "tools/tensors/picture.h"

namespace skillet::tools {

// `picture` must be in colour. Omits key points below `threshold` (none: the default).
void paint(Picture& picture, const Found& found, std::optional<double> threshold);
// "seven (0.99)", "class 7 (0.99)"
std::string caption_of(const TopClass& top);

}  // namespace skillet::tools
