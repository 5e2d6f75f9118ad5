#include "curves/curve_document.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace isofold {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::int64_t kMaxKnots = 5'000'000;
constexpr std::size_t kMaxSegments = 1'000'000;
constexpr std::size_t kMaxColumns = 16;
constexpr std::size_t kMaxCharacters = 1000;
constexpr int kMaxDepth = 4;

[[noreturn]] void fail(const std::string& what) { throw CurveFault(what); }

// Parses, and refuses what a lenient parser would let pass: deep nesting and keys that appear twice.
Json parse_strictly(std::string_view text) {
  if (text.size() > kMaxBytes) fail("the curve file is larger than 256 MiB");
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kMaxDepth) fail("the curve file is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail("the key \"" + parsed.get<std::string>() + "\" appears twice");
    }
    return true;
  };
  try {
    Json root = Json::parse(text.begin(), text.end(), watch);
    if (!root.is_object()) fail("the curve file is not a JSON object");
    return root;
  } catch (const Json::exception& error) {
    fail(std::string("the curve file is not JSON: ") + error.what());
  }
}

[[noreturn]] void fail_at_key(const std::string& where, const std::string& key, const char* what) {
  fail(where + ": the key \"" + key + "\" " + what);
}

void check_keys(const Json& object, const std::set<std::string>& wanted, const std::string& where) {
  for (const std::string& key : wanted) {
    if (!object.contains(key)) fail_at_key(where, key, "is missing");
  }
  for (const auto& [key, value] : object.items()) {
    if (!wanted.contains(key)) fail_at_key(where, key, "is unknown");
  }
}

double number(const Json& value, const std::string& where) {
  if (!value.is_number()) fail(where + " is not a number");
  return value.get<double>();
}

double count_of(const Json& object, const char* key, const std::string& where) {
  const double value = number(object.at(key), where + ": " + key);
  if (!(std::isfinite(value) && value >= 0)) fail(where + ": " + key + " is negative");
  return value;
}

std::int64_t whole_number(const Json& value, std::int64_t low, std::int64_t high, const std::string& where) {
  if (!value.is_number_integer()) fail(where + " is not a whole number");
  const bool too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high);
  if (too_large || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
    fail(where + " is out of range");
  return value.get<std::int64_t>();
}

std::size_t characters(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

std::string checked_text(const Json& value, std::size_t least, const std::string& where) {
  if (!value.is_string()) fail(where + " is not a string");
  const std::string text = value.get<std::string>();
  const std::size_t length = characters(text);
  if (length < least || length > kMaxCharacters)
    fail(where + " has " + std::to_string(length) + " characters");
  return text;
}

}  // namespace

CurveDocument::CurveDocument(std::string_view text) : root_(parse_strictly(text)) {
  read_head();
  read_global_curve();
  if (version_ == 2) {
    read_segment_counts();
    read_segment_columns();
    read_segments();
  }
  check_hash();
}

void CurveDocument::read_head() {
  if (!root_.contains("format") || root_["format"] != "isofold-curve")
    fail("the format is not isofold-curve");
  if (!root_.contains("version")) fail("the version is missing");
  version_ = static_cast<int>(whole_number(root_["version"], 1, std::numeric_limits<int>::max(), "version"));
  if (version_ > 2)
    fail("version " + std::to_string(version_) + " is newer than this reader, which knows 1 and 2");
  std::set<std::string> keys = {"format", "version", "increasing", "floor",      "ceiling",
                                "count",  "knots_x", "knots_y",    "score_name", "checksum"};
  if (version_ == 2) {
    keys.insert({"min_rows", "rows", "weight", "positives", "null_rows", "segment_columns", "segments"});
  }
  check_keys(root_, keys, "the curve file");
  hash_.bytes(version_ == 1 ? "isofold-curve 1\n" : "isofold-curve 2\n");

  if (!root_["increasing"].is_boolean()) fail("increasing is not true or false");
  curves_.increasing_ = root_["increasing"].get<bool>();
  hash_.byte(curves_.increasing_ ? 1 : 0);
  for (const bool is_floor : {true, false}) {
    const char* key = is_floor ? "floor" : "ceiling";
    double& bound = is_floor ? floor_ : ceiling_;
    if (root_[key].is_null()) {
      hash_.f64(is_floor ? -std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::infinity());
      continue;
    }
    bound = number(root_[key], key);
    if (!(bound >= 0 && bound <= 1)) fail(std::string(key) + " is not in [0, 1]");
    hash_.f64(bound);
  }
  if (floor_ > ceiling_) fail("floor exceeds ceiling");
  if (root_["score_name"].is_null()) {
    hash_.byte(0);
  } else {
    curves_.score_name_ = checked_text(root_["score_name"], 1, "score_name");
    hash_.byte(1);
    hash_.text(curves_.score_name_);
  }
}

void CurveDocument::read_global_curve() { read_curve(root_, "the global curve"); }

void CurveDocument::read_curve(const Json& object, const std::string& where) {
  const std::int64_t count = whole_number(object.at("count"), 1, kMaxKnots, where + ": count");
  all_knots_ += count;
  if (all_knots_ > kMaxKnots) fail("the curves have more than 5,000,000 knots");
  for (const char* key : {"knots_x", "knots_y"}) {
    if (!object.at(key).is_array() || object.at(key).size() != static_cast<std::size_t>(count)) {
      fail(where + ": " + key + " is not a list of " + std::to_string(count) + " numbers");
    }
  }
  hash_.u64(static_cast<std::uint64_t>(count));
  double previous = -std::numeric_limits<double>::infinity();
  for (const Json& value : object.at("knots_x")) {
    const double x = number(value, where + ": a knot's x") + 0.0;
    if (!std::isfinite(x)) fail(where + ": a knot's x is not finite");
    if (!(x > previous)) fail(where + ": knots_x does not rise");
    hash_.f64(x);
    curves_.knots_x_.push_back(x);
    previous = x;
  }
  previous = curves_.increasing_ ? 0.0 : 1.0;
  for (const Json& value : object.at("knots_y")) {
    const double y = number(value, where + ": a knot's y") + 0.0;
    if (!(y >= floor_ && y <= ceiling_)) fail(where + ": a knot's y is out of range");
    if (curves_.increasing_ ? y < previous : y > previous) fail(where + ": knots_y is not monotone");
    hash_.f64(y);
    curves_.knots_y_.push_back(y);
    previous = y;
  }
  curves_.offsets_.push_back(all_knots_);
}

void CurveDocument::read_segment_counts() {
  hash_.u64(
      static_cast<std::uint64_t>(whole_number(root_["min_rows"], 1, std::int64_t{1} << 53, "min_rows")));
  for (const char* key : {"rows", "weight", "positives", "null_rows"}) {
    hash_.f64(count_of(root_, key, "the curve file"));
  }
}

void CurveDocument::read_segment_columns() {
  const Json& columns = root_["segment_columns"];
  if (!columns.is_array() || columns.empty() || columns.size() > kMaxColumns) {
    fail("segment_columns is not a list of 1 to 16 columns");
  }
  hash_.u64(columns.size());
  std::set<std::string> names;
  for (const Json& column : columns) {
    if (!column.is_object()) fail("segment_columns: an entry is not an object");
    check_keys(column, {"name", "type"}, "segment_columns");
    std::string name;
    if (column["name"].is_null()) {
      hash_.byte(0);
    } else {
      name = checked_text(column["name"], 1, "segment_columns: name");
      if (!names.insert(name).second) fail("segment_columns: the name \"" + name + "\" appears twice");
      hash_.byte(1);
      hash_.text(name);
    }
    const Json& type = column["type"];
    const int code = type == "string" ? 1 : type == "integer" ? 2 : type == "boolean" ? 3 : 0;
    if (code == 0) fail("segment_columns: the type is none of string, integer and boolean");
    hash_.byte(code);
    column_types_.push_back(code);
    curves_.segment_columns_.push_back(std::move(name));
  }
}

void CurveDocument::read_segments() {
  const Json& segments = root_["segments"];
  if (!segments.is_array() || segments.size() > kMaxSegments)
    fail("segments is not a list of at most 1,000,000");
  hash_.u64(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Json& segment = segments[i];
    const std::string where = "segment " + std::to_string(i);
    if (!segment.is_object()) fail(where + " is not an object");
    const std::set<std::string> shared = {"key", "rows", "weight", "positives"};
    std::set<std::string> keys = shared;
    if (segment.contains("served_by_global")) {
      keys.insert("served_by_global");
    } else {
      keys.insert({"count", "knots_x", "knots_y"});
    }
    check_keys(segment, keys, where);
    SegmentKey key = read_key(segment, where);
    if (!curves_.keys_.empty() && !(curves_.keys_.back() < key)) fail(where + ": keys do not rise");
    for (const char* count : {"rows", "weight", "positives"}) hash_.f64(count_of(segment, count, where));
    curves_.keys_.push_back(std::move(key));
    read_segment_curve(segment, where);
  }
}

SegmentKey CurveDocument::read_key(const Json& segment, const std::string& where) {
  const Json& entries = segment["key"];
  if (!entries.is_array() || entries.size() != column_types_.size()) {
    fail(where + ": key is not a list of " + std::to_string(column_types_.size()));
  }
  SegmentKey key;
  for (std::size_t c = 0; c < entries.size(); ++c) {
    const Json& entry = entries[c];
    if (column_types_[c] == 1) {
      key.emplace_back(checked_text(entry, 0, where + ": key"));
      hash_.text(std::get<std::string>(key.back()));
    } else if (column_types_[c] == 2) {
      constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
      key.emplace_back(whole_number(entry, kLow, std::numeric_limits<std::int64_t>::max(), where + ": key"));
      hash_.u64(static_cast<std::uint64_t>(std::get<std::int64_t>(key.back())));
    } else {
      if (!entry.is_boolean()) fail(where + ": key is not true or false");
      key.emplace_back(entry.get<bool>());
      hash_.byte(entry.get<bool>() ? 1 : 0);
    }
  }
  return key;
}

void CurveDocument::read_segment_curve(const Json& segment, const std::string& where) {
  if (segment.contains("served_by_global")) {
    const Json& reason = segment["served_by_global"];
    if (reason != "single_class" && reason != "under_min_rows")
      fail(where + ": served_by_global has no known reason");
    hash_.byte(reason == "single_class" ? 1 : 2);
    curves_.curves_.push_back(0);
    return;
  }
  hash_.byte(0);
  curves_.curves_.push_back(curves_.count());
  read_curve(segment, where);
}

void CurveDocument::check_hash() const {
  const Json& checksum = root_.at("checksum");
  if (!checksum.is_string() || checksum.get<std::string>() != "sha256:" + hash_.digest()) {
    fail("the checksum does not fit: the curve file is damaged or was edited");
  }
}

}  // namespace isofold
