#include "iclflow/experiment/document_edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "iclflow/experiment/toml_text.hpp"

namespace iclflow {

namespace {

/// Walks along a path through tables, lists and named elements.
class Path {
 public:
  Path(const Document& document, const std::string& path, int line) : file_(document.file), path_(path), line_(line) {}

  [[nodiscard]] Value& find(Value& root) const {
    Value* at = &root;
    std::string_view rest = path_;
    while (!rest.empty()) {
      const std::size_t dot = rest.find('.');
      const std::string_view part = rest.substr(0, dot);
      rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
      at = at->kind == Value::Kind::array ? &element(*at, part) : &child(*at, part);
    }
    return *at;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& allowed) const {
    throw InputError(fmt::format("{}:{}: key 'sweep.{}': {}; allowed: {}", file_, line_, path_, what, allowed));
  }

  /// "key" or "key[0][1]" of a table.
  [[nodiscard]] Value& child(Value& table, std::string_view part) const {
    const std::size_t bracket = part.find('[');
    const std::string_view key = part.substr(0, bracket);
    if (key.empty()) fail("is no path", "table.key");
    if (table.kind != Value::Kind::table) fail(fmt::format("what stands before '{}' is no table", key), "table.key");
    Value* at = &entry(table, key);
    std::string_view indices = bracket == std::string_view::npos ? std::string_view() : part.substr(bracket);
    while (!indices.empty()) at = &item(*at, indices);
    return *at;
  }

  [[nodiscard]] Value& entry(Value& table, std::string_view key) const {
    const auto found =
        std::find_if(table.entries.begin(), table.entries.end(), [&](const auto& entry) { return entry.key == key; });
    if (found != table.entries.end()) return found->value;
    Value fresh;
    fresh.line = line_;
    table.entries.push_back({std::string(key), std::move(fresh)});
    return table.entries.back().value;
  }

  /// The item that the first "[k]" of `indices` names; takes it off.
  [[nodiscard]] Value& item(Value& list, std::string_view& indices) const {
    const std::size_t end = indices.find(']');
    std::size_t index = 0;
    const char* last = indices.data() + std::min(end, indices.size());
    const auto read = std::from_chars(indices.data() + 1, last, index);
    if (indices.front() != '[' || end == std::string_view::npos || read.ec != std::errc() || read.ptr != last) {
      fail("is no path", "indices as in initial.mu[0][1]");
    }
    if (list.kind != Value::Kind::array) fail("has an index, but the file has no list there", "a path without it");
    if (index >= list.items.size()) {
      fail(fmt::format("index {} is beyond the list's end", index), fmt::format("0 to {}", list.items.size() - 1));
    }
    indices.remove_prefix(end + 1);
    return list.items[index];
  }

  /// The element of a list of tables that has this name.
  [[nodiscard]] Value& element(Value& list, std::string_view name) const {
    std::string known;
    for (Value& table : list.items) {
      const std::string own = name_of(table);
      if (own == name) return table;
      known += (known.empty() ? "" : ", ") + own;
    }
    fail(fmt::format("there is nothing called '{}'", name), known.empty() ? "names that the file has" : known);
  }

  /// A table's name; without one its kind, as for dynamics.
  static std::string name_of(const Value& table) {
    for (const char* key : {"name", "kind"}) {
      for (const auto& [own, value] : table.entries) {
        if (own == key && value.kind == Value::Kind::text) return value.text;
      }
    }
    return "";
  }

  const std::string& file_;
  const std::string& path_;
  int line_;
};

void stand_on(Value& value, int line) {
  value.line = line;
  for (Value& item : value.items) stand_on(item, line);
  for (auto& entry : value.entries) stand_on(entry.value, line);
}

bool is_simulation(const Value& dynamics) {
  return std::any_of(dynamics.entries.begin(), dynamics.entries.end(), [](const auto& entry) {
    return entry.key == "kind" && entry.value.kind == Value::Kind::text && entry.value.text == "attention";
  });
}

}  // namespace

void assign(Document& document, const std::string& path, const Value& value, int line) {
  Value& place = Path(document, path, line).find(document.root);
  place = value;
  stand_on(place, line);
}

void remove(Document& document, std::string_view key) {
  std::erase_if(document.root.entries, [&](const auto& entry) { return entry.key == key; });
}

void leave_simulations_out(Document& document) {
  for (auto& [key, value] : document.root.entries) {
    if (key == "dynamics" && value.kind == Value::Kind::array) std::erase_if(value.items, is_simulation);
  }
  remove(document, "expect");
  remove(document, "report");
}

std::string toml(const Value& value) {
  const auto joined = [](const auto& parts, auto text) {
    std::string all;
    for (const auto& part : parts) all += (all.empty() ? "" : ", ") + text(part);
    return all;
  };
  switch (value.kind) {
    case Value::Kind::boolean:
      return value.flag ? "true" : "false";
    case Value::Kind::integer:
      return fmt::format("{}", value.integer);
    case Value::Kind::real:
      return TomlText::number(value.real);
    case Value::Kind::text:
      return TomlText::quoted(value.text);
    case Value::Kind::array:
      return fmt::format("[{}]", joined(value.items, [](const Value& item) { return toml(item); }));
    case Value::Kind::table:
      return fmt::format("{{{}}}", joined(value.entries, [](const auto& entry) {
                           return fmt::format("{} = {}", entry.key, toml(entry.value));
                         }));
    case Value::Kind::date:
      break;
  }
  return "date";
}

}  // namespace iclflow
