#include "tools/tensors/jpeg_scan.h"

// Each wants the one before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>

namespace skillet::tools {
namespace {

using Span = std::span<const uint8_t>;

// What the library makes of a file. Its errors come back to `failed`: nothing on the way there has a destructor.
struct Reading {
  Span file;
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  std::jmp_buf failed{};
  bool is_damaged = false, is_other = false;
  int ends = 0;  // that we gave, as the file has none
};
Reading& reading_of(j_common_ptr jpeg) { return *static_cast<Reading*>(jpeg->client_data); }

[[noreturn]] void fail(j_common_ptr jpeg) {
  Reading& reading = reading_of(jpeg);
  reading.is_other = jpeg->err->msg_code == JERR_SOF_UNSUPPORTED || jpeg->err->msg_code == JERR_BAD_PRECISION;
  std::longjmp(reading.failed, 1);
}

// Cameras pad the data with zeros, up to the marker. The bytes in front of it that no block has read:
bool is_padding(const Reading& reading) {
  const auto* const end =
      reading.ends == 0 ? reading.source.next_input_byte : reading.file.data() + reading.file.size();
  const auto before = static_cast<size_t>(end - reading.file.data());
  const size_t count = std::min(static_cast<size_t>(reading.errors.msg_parm.i[0]), before);
  return std::ranges::all_of(reading.file.subspan(before - count, count), [](uint8_t byte) { return byte == 0; });
}

void note(j_common_ptr jpeg, int level) {
  if (level >= 0) return;  // no warning
  Reading& reading = reading_of(jpeg);
  switch (jpeg->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_NOT_SEQUENTIAL: break;  // what matters of it, is_complete() sees
    case JWRN_EXTRANEOUS_DATA: reading.is_damaged |= reading.jpeg.input_scan_number > 0 && !is_padding(reading); break;
    default: reading.is_damaged = true;
  }
}

boolean give_end(j_decompress_ptr jpeg) {
  static constexpr JOCTET kEnd[] = {0xFF, JPEG_EOI};
  ++reading_of(reinterpret_cast<j_common_ptr>(jpeg)).ends;
  jpeg->src->next_input_byte = kEnd;
  jpeg->src->bytes_in_buffer = std::size(kEnd);
  return TRUE;
}

void skip(j_decompress_ptr jpeg, long count) {
  if (count < 0 || static_cast<size_t>(count) > jpeg->src->bytes_in_buffer)
    return fail(reinterpret_cast<j_common_ptr>(jpeg));
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<size_t>(count);
}

// Each component was in a scan and, of a progressive picture, all bits of its coefficients were.
bool is_complete(const jpeg_decompress_struct& jpeg) {
  for (int i = 0; i < jpeg.num_components; ++i) {
    if (jpeg.comp_info[i].quant_table == nullptr) return false;
    if (jpeg.progressive_mode == TRUE &&
        std::ranges::any_of(jpeg.coef_bits[i], [](int lacking) { return lacking != 0; }))
      return false;
  }
  return true;
}

JpegState read(Reading& reading, int64_t most_pixels) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  jpeg.err = jpeg_std_error(&reading.errors);
  reading.errors.error_exit = fail;
  reading.errors.emit_message = note;
  jpeg.client_data = &reading;
  if (setjmp(reading.failed) != 0) return reading.is_other ? JpegState::whole : JpegState::damaged;
  jpeg_create_decompress(&jpeg);
  reading.source = {.next_input_byte = reading.file.data(),
                    .bytes_in_buffer = reading.file.size(),
                    .init_source = [](j_decompress_ptr) {},
                    .fill_input_buffer = give_end,
                    .skip_input_data = skip,
                    .resync_to_restart = jpeg_resync_to_restart,
                    .term_source = [](j_decompress_ptr) {}};
  jpeg.src = &reading.source;
  jpeg_read_header(&jpeg, TRUE);
  if (int64_t{jpeg.image_width} * jpeg.image_height > most_pixels) return JpegState::whole;
  jpeg_read_coefficients(&jpeg);
  if (reading.is_damaged || reading.ends > 1 || !is_complete(jpeg)) return JpegState::damaged;
  return reading.ends == 0 ? JpegState::whole : JpegState::endless;
}

}  // namespace

JpegState jpeg_state(Span file, int64_t most_pixels) {
  const auto first = std::ranges::find_if(file, [](uint8_t byte) { return byte != 0xFF; });
  if (first == file.begin() || first == file.end() || *first != 0xD8) return JpegState::whole;  // no JPEG
  Reading reading{.file = file.subspan(static_cast<size_t>(first - file.begin()) - 1)};
  const JpegState state = read(reading, most_pixels);
  jpeg_destroy_decompress(&reading.jpeg);
  return state;
}

}  // namespace skillet::tools
