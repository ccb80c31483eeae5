#include "iclflow/experiment/json_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "iclflow/experiment/document.hpp"

namespace iclflow {

namespace {

using nlohmann::json;

/// Keys of the objects that are open while parsing; nlohmann silently keeps the last of two equal keys.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string file) : file_(std::move(file)) {}

  bool operator()(int /*depth*/, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && !open_.back().insert(value.get<std::string>()).second) {
      throw InputError(fmt::format("{}: key '{}': appears twice in one object", file_, value.get<std::string>()));
    }
    return true;
  }

 private:
  std::string file_;
  std::vector<std::set<std::string>> open_;
};

std::string reason(const json::exception& error) {
  std::string text =
      error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
  const auto bracket = text.find("] ");
  if (bracket != std::string::npos) text.erase(0, bracket + 2);
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return text;
}

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
  try {
    return json::parse(text, DuplicateKeys(file));
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    throw InputError(
        fmt::format("{}:{}: not valid JSON: {}", file, 1 + std::count(text.begin(), end, '\n'), reason(error)));
  } catch (const json::exception& error) {  // a number beyond double precision; the message holds it in quotes
    const std::string why = reason(error);
    const auto quote = std::min(why.find('\''), why.size() - 1);
    const auto at = text.find(std::string_view(why).substr(quote + 1, why.rfind('\'') - quote - 1));
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size()));
    throw InputError(fmt::format("{}:{}: not valid JSON: {}; allowed: finite numbers", file,
                                 1 + std::count(text.begin(), end, '\n'), why));
  }
}

json read_json(const std::filesystem::path& file) { return parse_json(read_text(file), file.string()); }

}  // namespace iclflow
