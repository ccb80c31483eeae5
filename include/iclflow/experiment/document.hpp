#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iclflow {

/// Input that cannot be meant. what() is one line: "FILE:LINE: key 'problem.heads': what is wrong (value); allowed:
/// ...".
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One node of a TOML document and the line it stands on.
struct Value {
  enum class Kind { boolean, integer, real, text, date, array, table };
  struct Entry;

  Kind kind = Kind::table;
  bool flag = false;
  std::int64_t integer = 0;
  bool decimal = true;  ///< false for integers written as 0x.., 0o.., 0b..
  double real = 0.0;
  std::string text;
  std::vector<Value> items;    ///< of an array
  std::vector<Entry> entries;  ///< of a table, sorted by key
  int line = 1;
};

struct Value::Entry {
  std::string key;
  Value value;
};

/// A whole file, read and parsed.
struct Document {
  std::string file;  ///< as the user named it, for error messages
  Value root;        ///< a table
};

/// Largest file that is read; an experiment of any sane size is far below it.
inline constexpr std::size_t largest_input_bytes = std::size_t{256} << 20U;

/// Contents of a file. Throws InputError when it is missing, a directory, unreadable, empty or too large.
[[nodiscard]] std::string read_text(const std::filesystem::path& file);
/// Throws InputError, as read_text() and for bytes that are not text and for TOML syntax errors (with their line).
[[nodiscard]] Document read_document(const std::filesystem::path& file);
[[nodiscard]] Document parse_document(std::string_view text, std::string file);

}  // namespace iclflow
