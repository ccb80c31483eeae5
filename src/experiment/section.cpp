#include "iclflow/experiment/section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "section_messages.hpp"

namespace iclflow {

struct Section::State {
  const Document* document;
  const Value* value;
  std::string path;
  std::vector<std::string> known;
};

Section::Section(const Document& document) : Section(document, document.root, "") {}

Section::Section(const Document& document, const Value& value, std::string path)
    : state_(std::make_shared<State>(State{&document, &value, std::move(path), {}})) {}

std::string Section::path(std::string_view key) const {
  return state_->path.empty() ? std::string(key) : fmt::format("{}.{}", state_->path, key);
}

const std::string& Section::file() const { return state_->document->file; }

const Value* Section::find(std::string_view key) const {
  auto& known = state_->known;
  if (std::find(known.begin(), known.end(), key) == known.end()) known.emplace_back(key);
  for (const auto& [name, value] : state_->value->entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool Section::has(std::string_view key) const { return find(key) != nullptr; }

std::optional<Value::Kind> Section::kind(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(value->kind);
}

bool Section::is_number(std::string_view key) const {
  const auto found = kind(key);
  return found == Value::Kind::integer || found == Value::Kind::real;
}

void Section::fail_at(int line, const std::string& where, const std::string& what, const std::string& allowed) const {
  throw InputError(
      fmt::format("{}:{}: key '{}': {}{}{}", file(), line, where, what, allowed.empty() ? "" : "; allowed: ", allowed));
}

void Section::fail(std::string_view key, const std::string& what, const std::string& allowed) const {
  const Value* value = find(key);
  fail_at(value == nullptr ? state_->value->line : value->line, path(key), what, allowed);
}

const Value& Section::require(std::string_view key, const std::string& allowed) const {
  const Value* value = find(key);
  if (value == nullptr) fail(key, "is missing", allowed);
  return *value;
}

double Section::finite(const Value& value, const std::string& where, Sign sign) const {
  const std::string allowed = allowed_numbers(sign);
  const bool integer = value.kind == Value::Kind::integer;
  if (!integer && value.kind != Value::Kind::real) {
    fail_at(value.line, where, fmt::format("wrong type ({})", shown(value)), allowed);
  }
  if (integer && !value.decimal) {
    fail_at(value.line, where, fmt::format("written in another base ({})", shown(value)),
            allowed + ", in decimal notation");
  }
  const double number = integer ? static_cast<double>(value.integer) : value.real;
  const bool holds = std::isfinite(number) && (sign != Sign::positive || number > 0.0) &&
                     (sign != Sign::non_negative || number >= 0.0);
  if (!holds) fail_at(value.line, where, fmt::format("impossible value ({})", shown(value)), allowed);
  return number;
}

std::int64_t Section::whole(const Value& value, const std::string& where, std::int64_t low, std::int64_t high) const {
  const std::string allowed = allowed_integers(low, high);
  if (value.kind != Value::Kind::integer) {
    fail_at(value.line, where, fmt::format("wrong type ({})", shown(value)), allowed);
  }
  if (value.integer < low || value.integer > high) {
    fail_at(value.line, where, fmt::format("impossible value ({})", shown(value)), allowed);
  }
  return value.integer;
}

double Section::number(std::string_view key, Sign sign, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  return finite(require(key, allowed_numbers(sign)), path(key), sign);
}

std::int64_t Section::integer(std::string_view key, std::int64_t low, std::int64_t high,
                              std::optional<std::int64_t> fallback) const {
  if (fallback && !has(key)) return *fallback;
  return whole(require(key, allowed_integers(low, high)), path(key), low, high);
}

bool Section::boolean(std::string_view key, bool fallback) const {
  const Value* value = find(key);
  if (value == nullptr) return fallback;
  if (value->kind != Value::Kind::boolean) fail(key, fmt::format("wrong type ({})", shown(*value)), "true, false");
  return value->flag;
}

std::string Section::text(std::string_view key, std::optional<std::string> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const Value& value = require(key, "a string");
  if (value.kind != Value::Kind::text) fail(key, fmt::format("wrong type ({})", shown(value)), "a string");
  return value.text;
}

std::string Section::choice(std::string_view key, const Choices& choices, std::optional<std::string> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const std::string allowed = in_quotes(choices.allowed);
  const Value& value = require(key, allowed);
  if (value.kind != Value::Kind::text) fail(key, fmt::format("wrong type ({})", shown(value)), allowed);
  const auto among = [&](const std::vector<std::string_view>& words) {
    return std::find(words.begin(), words.end(), value.text) != words.end();
  };
  if (among(choices.planned)) fail(key, shown(value) + " is planned and not there yet", allowed);
  if (!among(choices.allowed)) fail(key, fmt::format("unknown value ({})", shown(value)), allowed);
  return value.text;
}

std::optional<Section> Section::find_section(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Value::Kind::table) {
    fail(key, fmt::format("wrong type ({})", shown(*value)), fmt::format("a table [{}]", path(key)));
  }
  return Section(*state_->document, *value, path(key));
}

Section Section::section(std::string_view key) const {
  const auto found = find_section(key);
  if (!found) fail(key, "is missing", fmt::format("a table [{}]", path(key)));
  return *found;
}

std::vector<Section> Section::sections(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return {};
  const std::string allowed = fmt::format("tables [[{}]]", path(key));
  if (value->kind != Value::Kind::array) fail(key, fmt::format("wrong type ({})", shown(*value)), allowed);
  std::vector<Section> result;
  for (const Value& item : value->items) {
    const std::string where = fmt::format("{}[{}]", path(key), result.size());
    if (item.kind != Value::Kind::table) {
      fail_at(item.line, where, fmt::format("wrong type ({})", shown(item)), allowed);
    }
    result.push_back(Section(*state_->document, item, where));
  }
  return result;
}

std::vector<std::variant<std::string, Section>> Section::texts_or_sections(std::string_view key) const {
  const std::string allowed = "an array of strings and tables";
  const Value& value = require(key, allowed);
  if (value.kind != Value::Kind::array) fail(key, fmt::format("wrong type ({})", shown(value)), allowed);
  std::vector<std::variant<std::string, Section>> result;
  for (const Value& item : value.items) {
    const std::string where = fmt::format("{}[{}]", path(key), result.size());
    if (item.kind == Value::Kind::text) {
      result.emplace_back(item.text);
    } else if (item.kind == Value::Kind::table) {
      result.emplace_back(Section(*state_->document, item, where));
    } else {
      fail_at(item.line, where, fmt::format("wrong type ({})", shown(item)), "a string or a table");
    }
  }
  return result;
}

std::vector<std::string> Section::keys() const {
  std::vector<const Value::Entry*> entries;
  for (const auto& entry : state_->value->entries) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto* a, const auto* b) { return a->value.line < b->value.line; });
  std::vector<std::string> names;
  for (const auto* entry : entries) names.push_back(entry->key);
  return names;
}

void Section::finish() const {
  const auto known = state_->known;
  for (const std::string& key : keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    fail(key, "is not known here", fmt::format("{}", fmt::join(known, ", ")));
  }
}

void Section::refuse_planned(std::string_view key) const {
  for (const auto& [name, value] : state_->value->entries) {
    if (name == key) fail_at(value.line, path(key), "is planned and not there yet", {});
  }
}

}  // namespace iclflow
