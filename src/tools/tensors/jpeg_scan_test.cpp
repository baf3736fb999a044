// Small JPEGs and a PNG (whole, truncated at every byte, with gaps) that load_picture() accepts or refuses.
#include "tools/tensors/jpeg_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/bytes.h"
#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "tools/tensors/picture.h"
#include "tools/tensors/zip_file.h"

namespace skillet::tools {
namespace {

// 40 x 24 pixels: 4:2:0 with a restart every two units; progressive, 4:2:2.
constexpr std::string_view kBaseline =
    "ffd8ffdb004300140e0f120f0d14121012171514181e32211e1c1c1e3d2c2e243249404c4b47404645505a736250556d5645466488656d"
    "777b8182814e608d978c7d96737e817cffdb0043011517171e1a1e3b21213b7c5346537c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c"
    "7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7cffc00011080018002803012200021101031101ffc400190001"
    "000301010000000000000000000000000204050103ffc40023100002020104020203000000000000000001020003210411133112410551"
    "32a1b1ffc4001801010100030000000000000000000000000304000102ffc4001b11010101010003010000000000000000000100021103"
    "213141ffdd00040002ffda000c03010002110311003f0085769040519dcff65cd0d0f66e2c3c60fb2265d76b567cd58a91ee5d4f9855ac"
    "f2af91e815c498c57f976f385efe28bbb1b5080763b1cc95af5f99e32593d6fdccbd3ab3a9ca0eb24cf76d4ae8eb55b13911c9d88ec753"
    "0fb0e8e1dbffd0edcc0e01db7fb3132f5da9aec502a6393904751082465cd8500fb9c3f8444d33ebedffd1a1500464e7ef697c9a52aad2"
    "eab97b277c111127fdad01f4d0bb43f1fac51c2dc4ff00b8889d75877932f0bfffd9";
constexpr std::string_view kProgressive =
    "ffd8ffdb004300140e0f120f0d14121012171514181e32211e1c1c1e3d2c2e243249404c4b47404645505a736250556d5645466488656d"
    "777b8182814e608d978c7d96737e817cffdb0043011517171e1a1e3b21213b7c5346537c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c"
    "7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7cffc20011080018002803012100021101031101ffc400180000"
    "0301010000000000000000000000000002030401ffc40017010101010100000000000000000000000001020304ffda000c030100021003"
    "100000015b63d275ca4331bba468198a802db40a8c7fffc4001c1000020203010100000000000000000000000102111012210313ffda00"
    "080101000105024c82bc3a189d1f6e44db4539263c2394e1e733ffc4001a110002030101000000000000000000000000010210112131ff"
    "da0008010301013f019be5c87e5333468fffc40017110003010000000000000000000000000000011130ffda0008010201013f015853ff"
    "c4001a100002030101000000000000000000000000210110112031ffda0008010100063f021a3d15ba6c5c46c6891fffc4001c10010100"
    "02020300000000000000000000010011211041315171ffda0008010100013f21f44f0c06f0965d89c9b0e201a33f20a7520018311b4fc5"
    "d70d42866f95ffda000c03010002000300000010eee89c98cfffc400191100030101010000000000000000000000000111211071ffda00"
    "08010301013f104282543c153f793d34cc210719ffc4001a110002020300000000000000000000000000011021113141ffda0008010201"
    "013f104b8c885b12a8e898ffc4001c100100030101010101000000000000000001001121314151b1c1ffda0008010100013f105101b6fe"
    "cb6151f526a4e0d34ecbdb3e37d80e0d5fd629711ec61b383888b4f3565a05b49d39040dae89c9801f63244d77ed45f5ad6f1200fe9cff"
    "d9";

Bytes file_of(std::string_view hex) {
  Bytes out(hex.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, out[i], 16);
  return out;
}

// Offset after the header of the first scan.
size_t first_data(const Bytes& file) {
  const uint8_t marker[] = {0xFF, 0xDA};
  const auto at = static_cast<size_t>(std::search(file.begin(), file.end(), marker, marker + 2) - file.begin());
  return at + 2 + file[at + 3];
}

Result<Picture> load(const Bytes& file) {
  const std::string path = own_path("scan.jpg");
  EXPECT_TRUE(write_file(path, file).ok());
  auto picture = load_picture(path, 3);
  std::remove(path.c_str());
  return picture;
}

constexpr std::string_view kPictures[] = {kBaseline, kProgressive};

TEST(JpegScan, TakesWholePicturesWhateverFollows) {
  for (const std::string_view hex : kPictures) {
    const Bytes file = file_of(hex);
    ASSERT_EQ(jpeg_state(file), JpegState::whole);
    const auto picture = load(file);
    ASSERT_TRUE(picture.ok()) << picture.error().message;
    Bytes longer = file, endless = file;
    for (const uint8_t byte : {0, 1, 0xFF, 0xD8, 2}) longer.push_back(byte);
    endless.resize(file.size() - 2);
    EXPECT_EQ(jpeg_state(endless), JpegState::endless);
    for (const Bytes& other : {longer, endless}) {
      const auto same = load(other);
      ASSERT_TRUE(same.ok()) << same.error().message;
      EXPECT_EQ(same->pixels, picture->pixels);
    }
  }
}

TEST(JpegScan, RefusesWhatIsCutAnywhere) {
  for (const std::string_view hex : kPictures) {
    const Bytes file = file_of(hex);
    for (size_t size = first_data(file); size < file.size() - 2; ++size) {
      Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(jpeg_state(cut), JpegState::damaged) << size;
      cut.insert(cut.end(), {0xFF, 0xD9});
      EXPECT_EQ(jpeg_state(cut), JpegState::damaged) << size << ", with an end";
      const auto picture = load(cut);
      ASSERT_FALSE(picture.ok()) << size;
      EXPECT_NE(picture.error().message.find("the picture is damaged or cut off"), std::string::npos)
          << picture.error().message;
    }
  }
}

// Two blocks of 8x8 pixels, of which every code is long: of 12 bits the difference 0, of 16 the end of the block.
Bytes of_long_codes() {
  Bytes file = {0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 16, 1, 1, 0x11, 0};
  const auto add = [&](std::initializer_list<uint8_t> bytes) { file.insert(file.end(), bytes); };
  add({0xFF, 0xC4, 0, 31, 0x00, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  add({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0});
  add({0xFF, 0xC4, 0, 35, 0x10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  add({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0});
  add({0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  add({0xFF, 0, 0xEF, 0xFF, 0, 0xEF, 0xFE, 0xFF, 0, 0xFE, 0xFF, 0xD9});
  return file;
}

// The same picture with this number of components, each in a scan of its own.
Bytes of_components(uint8_t count) {
  const Bytes one = of_long_codes();
  const auto scan = one.begin() + static_cast<std::ptrdiff_t>(first_data(one)) - 8;
  Bytes file = {0xFF, 0xD8, 0xFF, 0xC0, 0, static_cast<uint8_t>(8 + 3 * count), 8, 0, 8, 0, 16, count};
  for (uint8_t id = 1; id <= count; ++id) file.insert(file.end(), {id, 0x11, 0});
  file.insert(file.end(), one.begin() + 15, scan - 2);  // the tables
  for (uint8_t id = 1; id <= count; ++id) {
    file.insert(file.end(), {0xFF, 0xDA, 0, 8, 1, id, 0, 0, 63, 0});
    file.insert(file.end(), scan + 8, one.end() - 2);
  }
  file.insert(file.end(), {0xFF, 0xD9});
  return file;
}

TEST(JpegScan, HasUpToFourComponents) {
  for (uint8_t count = 1; count <= 4; ++count) EXPECT_EQ(jpeg_state(of_components(count)), JpegState::whole) << +count;
  EXPECT_EQ(jpeg_state(of_components(5)), JpegState::damaged);
}

TEST(JpegScan, ReadsLongCodes) {
  const Bytes file = of_long_codes();
  EXPECT_EQ(jpeg_state(file), JpegState::whole);
  Bytes cut = file;
  cut.erase(cut.end() - 3);  // the last bits of the second block's end
  EXPECT_EQ(jpeg_state(cut), JpegState::damaged);
}

TEST(JpegScan, RefusesZerosInPlaceOfTheRest) {
  for (const std::string_view hex : kPictures) {
    Bytes file = file_of(hex);
    const size_t from = (first_data(file) + file.size()) / 2;
    std::fill(file.begin() + static_cast<std::ptrdiff_t>(from), file.end() - 2, uint8_t{0});
    EXPECT_EQ(jpeg_state(file), JpegState::damaged);
    std::fill(file.end() - 2, file.end(), uint8_t{0});
    EXPECT_EQ(jpeg_state(file), JpegState::damaged);
  }
}

// Cameras pad with zeros up to the marker. Other bytes there are not padding.
TEST(JpegScan, TakesPaddingBehindTheLastBlock) {
  const Bytes file = file_of(kBaseline);
  for (const auto& [byte, wanted] : {std::pair<uint8_t, JpegState>{0, JpegState::whole}, {0x55, JpegState::damaged}}) {
    Bytes padded = file;
    padded.insert(padded.end() - 2, 40, byte);
    EXPECT_EQ(jpeg_state(padded), wanted);
  }
}

TEST(JpegScan, RefusesALostInterval) {
  const Bytes file = file_of(kBaseline);
  const auto marker = [&](uint8_t which) {
    const uint8_t bytes[] = {0xFF, which};
    return std::search(file.begin() + static_cast<std::ptrdiff_t>(first_data(file)), file.end(), bytes, bytes + 2);
  };
  ASSERT_NE(marker(0xD1), file.end());
  Bytes lost(file.begin(), marker(0xD0));
  lost.insert(lost.end(), marker(0xD1), file.end());
  EXPECT_EQ(jpeg_state(lost), JpegState::damaged);
}

// A grey row of `blocks` blocks of zeros, with a restart after each but the last. Both codes are the single bit 0.
Bytes row_of_restarts(int blocks, int period) {
  const int width = 8 * blocks;
  Bytes file = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  file.insert(file.end(), 64, 1);
  file.insert(file.end(), {0xFF, 0xC0, 0, 11, 8, 0, 8, static_cast<uint8_t>(width >> 8), static_cast<uint8_t>(width), 1,
                           1, 0x11, 0});
  for (const uint8_t table : {0x00, 0x10}) {
    file.insert(file.end(), {0xFF, 0xC4, 0, 20, table, 1});
    file.insert(file.end(), 16, 0);
  }
  file.insert(file.end(), {0xFF, 0xDD, 0, 4, 0, 1, 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  for (int i = 0; i < blocks; ++i) {
    if (i > 0) file.insert(file.end(), {0xFF, static_cast<uint8_t>(0xD0 + (i - 1) % period)});
    file.push_back(0x3F);
  }
  file.insert(file.end(), {0xFF, 0xD9});
  return file;
}

TEST(JpegScan, RestartsCountToEightAndBeginAgain) {
  const Bytes file = row_of_restarts(18, 8);
  EXPECT_EQ(jpeg_state(file), JpegState::whole);
  const auto picture = load(file);
  ASSERT_TRUE(picture.ok()) << picture.error().message;
  EXPECT_EQ(std::pair(picture->width_px, picture->height_px), std::pair(144, 8));
  EXPECT_EQ(jpeg_state(row_of_restarts(18, 7)), JpegState::damaged);
  EXPECT_EQ(jpeg_state(row_of_restarts(18, 9)), JpegState::damaged);
}

// Each bit of them turned, in turn: what is said then, as a checksum. Decoders of codes, tables and scans all have
// their part in it.
TEST(JpegScan, JudgesEachTurnedBitAsBefore) {
  const std::pair<Bytes, uint32_t> rows[] = {{file_of(kBaseline), 0x2846A8BD},
                                             {file_of(kProgressive), 0x10590FFE},
                                             {of_long_codes(), 0xD6B4EFC5},
                                             {of_components(2), 0xEAB28131},
                                             {row_of_restarts(9, 8), 0x27A35C27}};
  for (auto [file, expected] : rows) {
    Bytes said;
    for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
      file[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
      said.push_back(static_cast<uint8_t>(jpeg_state(file)));
      file[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    }
    EXPECT_EQ(crc32(said), expected) << file.size() << " bytes";
  }
}

// Headers too, and each of their bytes; sanitizers see reads beyond the end.
TEST(JpegScan, NoticesDamagedHeaders) {
  for (const std::string_view hex : kPictures) {
    const Bytes file = file_of(hex);
    for (size_t size = 4; size < first_data(file); ++size)
      EXPECT_EQ(jpeg_state(std::span(file).first(size)), JpegState::damaged) << size;
    size_t noticed = 0;
    for (size_t at = 2; at < first_data(file); ++at) {
      for (const uint8_t byte : {0x00, 0x11, 0x7F, 0xFF}) {
        Bytes changed = file;
        changed[at] = byte;
        noticed += jpeg_state(changed) == JpegState::damaged ? 1 : 0;
        if (const auto picture = load(changed); picture.ok()) {
          EXPECT_GT(picture->width_px * picture->height_px, 0);
        }
      }
    }
    EXPECT_GT(noticed, first_data(file) / 2);
  }
}

// A few bytes may request gigabytes.
TEST(JpegScan, RefusesMoreComponentsThanPicturesHave) {
  Bytes file = {0xFF, 0xD8, 0xFF, 0xC2, 0, 8 + 5 * 3, 8, 0x1F, 0xF0, 0x1F, 0xF0, 5};
  for (uint8_t id = 1; id <= 5; ++id) file.insert(file.end(), {id, 0x11, 0});
  EXPECT_EQ(jpeg_state(file, kMaxPicturePixels), JpegState::damaged);
}

// The decoder has room for 256 codes, but writes as many as a table declares. It skips fill bytes before markers.
TEST(JpegScan, RefusesTablesOfTooManyCodes) {
  const uint8_t marker[] = {0xFF, 0xC4};
  for (const std::string_view hex : kPictures) {
    for (const size_t filling : {0, 1, 3}) {
      Bytes file = file_of(hex);
      const auto table = std::search(file.begin(), file.end(), marker, marker + 2);
      ASSERT_NE(table, file.end());
      table[5 + 15] = 0xFF, table[5 + 14] = 0xFF;
      const Bytes whole_table(table, table + 2 + table[3]);
      file.insert(file.begin() + 2, whole_table.begin(), whole_table.end());  // where only its size is asked for, too
      file.insert(file.begin(), filling, 0xFF);
      EXPECT_EQ(jpeg_state(file), JpegState::damaged) << filling;
      EXPECT_FALSE(load(file).ok()) << filling;
    }
  }
}

TEST(JpegScan, LeavesOtherFilesToTheirReaders) {
  EXPECT_EQ(jpeg_state({}), JpegState::whole);
  EXPECT_EQ(jpeg_state(Bytes{0x89, 'P', 'N', 'G'}), JpegState::whole);
}

TEST(Png, IsRefusedWithAnyByteCutOrChanged) {
  const Bytes whole = read_file(in_tree("models/digits/3.png")).value();
  const std::string path = own_path("damaged.png");
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= 1;
    for (const Bytes& bad : {Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)), changed}) {
      ASSERT_TRUE(write_file(path, bad).ok());
      EXPECT_FALSE(load_picture(path, 1).ok()) << at << " of " << whole.size();
    }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace skillet::tools
