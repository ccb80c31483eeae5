#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "iclflow/experiment/sweep.hpp"

namespace iclflow {

namespace {

constexpr std::size_t longest_name = 128;
constexpr std::string_view allowed_characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=,.+";

/// A value as part of a folder's name.
std::string name_part(const Value& value) {
  const auto joined = [](const std::vector<Value>& items) {
    const bool nested =
        std::any_of(items.begin(), items.end(), [](const Value& item) { return item.kind == Value::Kind::array; });
    std::string all;
    for (const Value& item : items) {
      if (!all.empty()) all += nested ? '_' : 'x';
      all += name_part(item);
    }
    return all;
  };
  switch (value.kind) {
    case Value::Kind::boolean:
      return value.flag ? "true" : "false";
    case Value::Kind::integer:
      return fmt::format("{}", value.integer);
    case Value::Kind::real:
      return fmt::format("{}", value.real);
    case Value::Kind::array:
      return joined(value.items);
    case Value::Kind::table: {
      std::string all;
      for (const auto& [key, entry] : value.entries)
        all += fmt::format("{}{}{}", all.empty() ? "" : "_", key, name_part(entry));
      return all;
    }
    default: {
      std::string text = value.text;
      std::replace_if(
          text.begin(), text.end(), [](char c) { return allowed_characters.find(c) == std::string_view::npos; }, '-');
      return text;
    }
  }
}

/// The shortest tail of each path that tells them apart: "batch", or "simulation.batch" beside "other.batch".
std::vector<std::string> short_paths(const std::vector<SweptKey>& keys) {
  std::vector<std::string> names(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const std::string& path = keys[k].path;
    std::size_t begin = path.rfind('.');
    const auto shared = [&](std::string_view tail) {
      return std::count_if(keys.begin(), keys.end(), [&](const SweptKey& other) {
        return other.path == tail || other.path.ends_with(fmt::format(".{}", tail));
      });
    };
    while (begin != std::string::npos && begin > 0 && shared(std::string_view(path).substr(begin + 1)) > 1) {
      begin = path.rfind('.', begin - 1);
    }
    names[k] = begin == std::string::npos ? path : path.substr(begin + 1);
    std::erase(names[k], '[');
    std::replace(names[k].begin(), names[k].end(), ']', '_');
    while (names[k].ends_with('_')) names[k].pop_back();
  }
  return names;
}

}  // namespace

std::vector<std::string> Sweep::default_names() const {
  const std::vector<std::string> keys = short_paths(keys_);
  std::vector<std::string> names;
  for (std::size_t member = 0; member < size_; ++member) {
    std::string name;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      name += fmt::format("{}{}={}", k > 0 ? "," : "", keys[k], name_part(value(member, k)));
    }
    names.push_back(std::move(name));
  }
  return names;
}

void Sweep::check_names(const std::vector<std::string>& names, int line) const {
  std::unordered_set<std::string> seen;
  for (const std::string& name : names) {
    const auto refuse = [&](const std::string& what, const std::string& allowed) {
      throw InputError(fmt::format("{}:{}: key 'sweep.names': member name \"{}\" {}; allowed: {}", document_.file, line,
                                   name.substr(0, longest_name), what, allowed));
    };
    const bool plain = name.find_first_not_of(allowed_characters) == std::string::npos;
    if (name.empty() || name.size() > longest_name || !plain || name.front() == '.') {
      refuse("is no folder's name",
             fmt::format("1 to {} of the characters A-Z a-z 0-9 _ - = , . +, not beginning with a dot (give names = "
                         "[...])",
                         longest_name));
    }
    if (!seen.insert(name).second) refuse("is used twice", "values that differ, or names = [...] that differ");
  }
}

}  // namespace iclflow
