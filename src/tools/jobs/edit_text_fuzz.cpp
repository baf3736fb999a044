// For any text parse_edit_text() returns an error, or a capture that gives the same capture through its text.
#include <cstdlib>

#include "tools/jobs/edit_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet;
  auto parsed = tools::parse_edit_text({reinterpret_cast<const char*>(data), size}, "");
  if (!parsed.ok()) return 0;
  capture::Reader reader = capture::Reader::of(*parsed);
  const auto text = tools::edit_text(reader, "");
  if (!text.ok()) return 0;
  const auto again = tools::parse_edit_text(*text, "");
  if (!again.ok() || !(*again == *parsed)) std::abort();
  return 0;
}
