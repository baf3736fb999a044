#include "golden_case.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/splitmix64.h"
#include "base/testing/in_tree.h"
#include "sha256.h"

namespace skillet::golden {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kHashDigits = 32;

size_t elem_bytes(const std::string& type) {
  if (type == "FLOAT32" || type == "INT32") return 4;
  if (type == "INT16") return 2;
  return type == "INT64" ? 8 : 1;
}

// Each element is the low byte of a drawn number, or its high bits as a float in [0, 1).
Bytes generate(SplitMix64& random, const std::string& type, size_t size_bytes) {
  const size_t width = elem_bytes(type);
  Bytes bytes(size_bytes);
  for (size_t i = 0; i + width <= size_bytes; i += width) {
    const uint64_t draw = random.next();
    if (type == "FLOAT32") {
      store_le(&bytes[i], static_cast<float>(draw >> 40) / static_cast<float>(1 << 24));
    } else {
      bytes[i] = static_cast<uint8_t>(draw);
    }
  }
  return bytes;
}

Result<void> check_hash(std::span<const uint8_t> bytes, const std::string& expected) {
  const std::string hash = sha256_hex(bytes).substr(0, kHashDigits);
  if (hash == expected) return {};
  return error(ErrorCode::malformed, "hash {}, expected {}", hash, expected);
}

Result<CaseInput> read_input(const json& from, const fs::path& folder, SplitMix64& random) {
  CaseInput input{from.at("name"), from.at("dims"), from.at("type"), {}};
  const auto size_bytes = from.at("bytes").get<size_t>();
  if (from.contains("file")) {
    SK_TRY_ASSIGN(input.bytes, read_file(folder / from.at("file").get<std::string>()));
  } else if (from.value("generator", "") == "splitmix64 seed 1") {
    input.bytes = generate(random, input.type, size_bytes);
  } else {
    return error(ErrorCode::unsupported, "input '{}' was not kept", input.name);
  }
  SK_TRY(check_hash(input.bytes, from.at("sha256_128")).with_context(fmt::format("input '{}'", input.name)));
  return input;
}

Result<CaseOutput> read_output(const json& from, const fs::path& folder) {
  CaseOutput output{from.at("name"), from.at("dims"), from.at("type"), from.at("bytes"), from.at("sha256_128"), {}};
  if (from.contains("file")) {
    SK_TRY_ASSIGN(output.expected, read_file(folder / from.at("file").get<std::string>()));
    SK_TRY(check_hash(*output.expected, output.sha256_128).with_context(fmt::format("output '{}'", output.name)));
  }
  return output;
}

Result<GoldenCase> read_case(const json& root, const std::string& golden_dir, const fs::path& folder) {
  GoldenCase result;
  result.model_path = fs::path(golden_dir) / root.at("model").get<std::string>();
  result.ops = root.at("ops");
  SplitMix64 random(1);  // one stream for all inputs
  for (const json& from : root.at("inputs")) {
    SK_TRY_ASSIGN(auto input, read_input(from, folder, random));
    result.inputs.push_back(std::move(input));
  }
  for (const json& from : root.at("outputs")) {
    SK_TRY_ASSIGN(auto output, read_output(from, folder));
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace

std::optional<std::string> find_golden_dir() {
  const char* from_env = std::getenv("SKILLET_GOLDEN");
  const fs::path path = from_env != nullptr ? from_env : in_tree("../shared/golden");
  std::error_code ignored;
  if (!fs::is_directory(path / "cases", ignored)) return std::nullopt;
  return path.lexically_normal().string();
}

Result<std::vector<CaseId>> list_cases(const std::string& golden_dir) {
  std::vector<CaseId> ids;
  std::error_code failure;
  const fs::path cases = fs::path(golden_dir) / "cases";
  for (fs::directory_iterator set(cases, failure), end; !failure && set != end; set.increment(failure)) {
    for (fs::directory_iterator at(set->path(), failure); !failure && at != end; at.increment(failure)) {
      if (!fs::exists(at->path() / "case.json")) continue;
      ids.push_back({set->path().filename().string(), at->path().filename().string()});
    }
  }
  if (failure) return error(ErrorCode::io, "listing {}: {}", cases.string(), failure.message());
  std::sort(ids.begin(), ids.end(),
            [](const CaseId& a, const CaseId& b) { return std::tie(a.set, a.name) < std::tie(b.set, b.name); });
  return ids;
}

Result<GoldenCase> load_case(const std::string& golden_dir, const std::string& set, const std::string& name) {
  const fs::path folder = fs::path(golden_dir) / "cases" / set / name;
  const std::string path = folder / "case.json";
  SK_TRY_ASSIGN(const Bytes text, read_file(path));
  try {
    SK_TRY_ASSIGN(GoldenCase result, read_case(json::parse(text), golden_dir, folder).with_context(path));
    result.set = set;
    result.name = name;
    return result;
  } catch (const json::exception& e) {
    return error(ErrorCode::malformed, "{}: {}", path, e.what());
  }
}

Result<void> compare_output(const CaseOutput& output, std::span<const uint8_t> actual) {
  if (actual.size() != output.bytes) {
    return error(ErrorCode::malformed, "output '{}' has {} bytes, expected {}", output.name, actual.size(),
                 output.bytes);
  }
  if (check_hash(actual, output.sha256_128)) return {};
  if (!output.expected) return error(ErrorCode::malformed, "output '{}' has another hash", output.name);
  const auto differs = std::mismatch(actual.begin(), actual.end(), output.expected->begin());
  size_t count = 0;
  for (size_t i = 0; i < actual.size(); ++i) count += actual[i] != (*output.expected)[i] ? 1 : 0;
  return error(ErrorCode::malformed, "output '{}': {} of {} bytes differ, the first at {}: {}, expected {}",
               output.name, count, actual.size(), differs.first - actual.begin(), *differs.first, *differs.second);
}

}  // namespace skillet::golden
