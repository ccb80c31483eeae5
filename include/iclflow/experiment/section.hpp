#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "iclflow/experiment/document.hpp"
#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// What a number may be. Never nan or infinite.
enum class Sign { any, non_negative, positive };

/// Words a key may take; `planned` ones are known but come with a later version.
struct Choices {
  std::vector<std::string_view> allowed;
  std::vector<std::string_view> planned{};
};

/// Typed reading of one TOML table. Every key that is asked for counts as known; finish() refuses the others and lists
/// what is known. All failures throw InputError with file, line and the key's full path. Copies share what was asked.
/// The Document must outlive its sections.
class Section {
 public:
  explicit Section(const Document& document);

  /// Whether the key is there; makes it known.
  [[nodiscard]] bool has(std::string_view key) const;
  /// Kind of the value, empty when absent; makes the key known.
  [[nodiscard]] std::optional<Value::Kind> kind(std::string_view key) const;
  [[nodiscard]] bool is_number(std::string_view key) const;

  [[nodiscard]] double number(std::string_view key, Sign sign, std::optional<double> fallback = {}) const;
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high,
                                     std::optional<std::int64_t> fallback = {}) const;
  [[nodiscard]] bool boolean(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string text(std::string_view key, std::optional<std::string> fallback = {}) const;
  [[nodiscard]] std::string choice(std::string_view key, const Choices& choices,
                                   std::optional<std::string> fallback = {}) const;

  /// Lists are required; those of numbers not empty.
  [[nodiscard]] std::vector<double> numbers(std::string_view key, Sign sign) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key, std::int64_t low, std::int64_t high,
                                                   std::size_t largest_count) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  /// Rectangular, not empty, finite entries.
  [[nodiscard]] Matrix matrix(std::string_view key) const;

  /// A required table, an optional one, and an array of tables (empty when absent).
  [[nodiscard]] Section section(std::string_view key) const;
  [[nodiscard]] std::optional<Section> find_section(std::string_view key) const;
  [[nodiscard]] std::vector<Section> sections(std::string_view key) const;
  /// A list of strings and tables in any order; may be empty.
  [[nodiscard]] std::vector<std::variant<std::string, Section>> texts_or_sections(std::string_view key) const;

  /// Keys of this table in the order of their lines; makes none of them known.
  [[nodiscard]] std::vector<std::string> keys() const;

  /// Refuses keys that nobody asked for.
  void finish() const;
  /// Refuses a key that is planned for a later version, if it is there.
  void refuse_planned(std::string_view key) const;
  /// "FILE:LINE: key 'path.key': what[; allowed: ...]"; the line is the key's, or this table's when it is absent.
  [[noreturn]] void fail(std::string_view key, const std::string& what, const std::string& allowed = {}) const;
  [[nodiscard]] std::string path(std::string_view key) const;
  [[nodiscard]] const std::string& file() const;

 private:
  struct State;
  Section(const Document& document, const Value& value, std::string path);
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] const Value& require(std::string_view key, const std::string& allowed) const;
  [[nodiscard]] const std::vector<Value>& list(std::string_view key, const std::string& allowed) const;
  [[nodiscard]] double finite(const Value& value, const std::string& where, Sign sign) const;
  [[nodiscard]] std::int64_t whole(const Value& value, const std::string& where, std::int64_t low,
                                   std::int64_t high) const;
  [[noreturn]] void fail_at(int line, const std::string& where, const std::string& what,
                            const std::string& allowed) const;

  std::shared_ptr<State> state_;
};

/// "a, b, c"
[[nodiscard]] std::string listed(const std::vector<std::string_view>& words);

}  // namespace iclflow
