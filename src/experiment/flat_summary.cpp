#include "iclflow/experiment/flat_summary.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view error_suffix = "_standard_error";

/// Keys that tell the elements of a list of objects apart; the first set that an element has.
const std::array<std::vector<const char*>, 4> identities{std::vector<const char*>{"name"},
                                                         {"theory", "simulation"},
                                                         {"shift", "context_length", "estimator"},
                                                         {"context_length", "estimator"}};

constexpr std::array<std::string_view, 12> left_out{"version", "title",  "system", "status",       "seeds",  "seed",
                                                    "problem", "expect", "checks", "wall_seconds", "events", "claim"};

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// "theory.simulation" of an element of a list; its index in brackets when it has no name.
std::string identity(const Json& element, std::size_t index, std::size_t& used) {
  for (const auto& keys : identities) {
    std::string name;
    used = 0;
    for (const char* key : keys) {
      const auto found = element.find(key);
      if (found == element.end() || found->is_null()) break;
      name += fmt::format(".{}", text_of(*found));
      ++used;
    }
    if (used == keys.size()) return name;
  }
  used = 0;
  return fmt::format("[{}]", index);
}

bool is_identity(std::string_view key) {
  return key == "name" || key == "theory" || key == "simulation" || key == "context_length" || key == "estimator" ||
         key == "shift";
}

class Flattening {
 public:
  /// suffix: "_standard_error" inside the errors of a list or an object.
  void add(const Json& value, const std::string& path, const std::string& suffix) {
    if (value.is_boolean()) {
      flat_.emplace_back(path + suffix, value.get<bool>() ? 1.0 : 0.0);
    } else if (value.is_number()) {
      flat_.emplace_back(path + suffix, value.get<double>());
    } else if (value.is_array()) {
      for (std::size_t k = 0; k < value.size(); ++k) add_element(value[k], k, path, suffix);
    } else if (value.is_object()) {
      for (const auto& [key, entry] : value.items()) add_entry(value, key, entry, path, suffix);
    }
  }
  [[nodiscard]] FlatSummary take() { return std::move(flat_); }

 private:
  void add_element(const Json& element, std::size_t index, const std::string& path, const std::string& suffix) {
    if (!element.is_object()) return add(element, fmt::format("{}[{}]", path, index), suffix);
    std::size_t used = 0;
    const std::string name = identity(element, index, used);
    for (const auto& [key, entry] : element.items()) {
      if (used > 0 && is_identity(key) && !entry.is_object()) continue;
      add_entry(element, key, entry, path + name, suffix);
    }
  }

  void add_entry(const Json& object, const std::string& key, const Json& entry, const std::string& path,
                 const std::string& suffix) {
    for (const std::string_view word : left_out) {
      if (key == word) return;
    }
    const std::string before = path.empty() ? std::string() : fmt::format("{}.", path);
    if (key == "standard_error" && object.contains("loss")) {
      add(entry, before + "loss", std::string(error_suffix));
    } else if (key.ends_with(error_suffix) && entry.is_structured()) {
      add(entry, before + key.substr(0, key.size() - error_suffix.size()), std::string(error_suffix));
    } else {
      add(entry, before + key, suffix);
    }
  }

  FlatSummary flat_;
};

}  // namespace

FlatSummary flatten(const Json& summary) {
  Flattening flattening;
  flattening.add(summary, "", "");
  return flattening.take();
}

}  // namespace iclflow
