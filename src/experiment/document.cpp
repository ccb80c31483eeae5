#include "iclflow/experiment/document.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "key_depth.hpp"

namespace iclflow {

namespace {

int line_of(const toml::source_region& source) { return std::max(1, static_cast<int>(source.begin.line)); }

Value convert(const toml::node& node, int fallback_line);

Value convert_array(const toml::array& array, int line) {
  Value value;
  value.kind = Value::Kind::array;
  for (const toml::node& item : array) value.items.push_back(convert(item, line));
  return value;
}

Value convert_table(const toml::table& table) {
  Value value;
  value.kind = Value::Kind::table;
  for (const auto& [key, item] : table) {
    Value entry = convert(item, line_of(key.source()));
    entry.line = line_of(key.source());
    value.entries.push_back({std::string(key.str()), std::move(entry)});
  }
  return value;
}

Value convert_scalar(const toml::node& node) {
  Value value;
  if (const auto* flag = node.as_boolean()) {
    value.kind = Value::Kind::boolean;
    value.flag = flag->get();
  } else if (const auto* integer = node.as_integer()) {
    constexpr auto other_bases = toml::value_flags::format_as_hexadecimal | toml::value_flags::format_as_octal |
                                 toml::value_flags::format_as_binary;
    value.kind = Value::Kind::integer;
    value.integer = integer->get();
    value.decimal = (integer->flags() & other_bases) == toml::value_flags::none;
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = Value::Kind::real;
    value.real = real->get();
  } else if (const auto* text = node.as_string()) {
    value.kind = Value::Kind::text;
    value.text = text->get();
  } else {
    value.kind = Value::Kind::date;
  }
  return value;
}

Value convert(const toml::node& node, int fallback_line) {
  const int line = node.source().begin.line > 0 ? line_of(node.source()) : fallback_line;
  Value value;
  if (const auto* table = node.as_table()) {
    value = convert_table(*table);
  } else if (const auto* array = node.as_array()) {
    value = convert_array(*array, line);
  } else {
    value = convert_scalar(node);
  }
  value.line = line;
  return value;
}

std::string on_one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\r', ' ');
  return line;
}

struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

}  // namespace

std::string read_text(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto refuse = [&](const std::string& what) {
    throw InputError(name + ": " + what + "; allowed: a readable file");
  };
  // Without waiting: opening a named pipe that nobody writes to would never return.
  const Descriptor input(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (input.number < 0 && errno == ENOENT) refuse("no such file");
  if (input.number < 0) refuse("cannot be opened for reading: " + std::generic_category().message(errno));
  struct stat status = {};
  if (::fstat(input.number, &status) != 0) refuse("cannot be read");
  if (S_ISDIR(status.st_mode)) refuse("is a directory");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) refuse("is a device");
  ::fcntl(input.number, F_SETFL, 0);  // a pipe with a writer is waited for
  std::string text;
  std::vector<char> buffer(1U << 16U);
  while (true) {
    const ::ssize_t count = ::read(input.number, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse("cannot be read: " + std::generic_category().message(errno));
    if (count == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > largest_input_bytes) {
      throw InputError(
          fmt::format("{}: is larger than {} MB; allowed: a smaller file", name, largest_input_bytes >> 20U));
    }
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw InputError(name + ": is empty");
  return text;
}

Document read_document(const std::filesystem::path& file) { return parse_document(read_text(file), file.string()); }

Document parse_document(std::string_view text, std::string file) {
  const auto zero = text.find('\0');
  if (zero != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
    throw InputError(fmt::format("{}:{}: holds a zero byte, so it is not text; allowed: TOML in UTF-8", file, line));
  }
  if (const int line = line_of_deep_key(text); line > 0) {
    throw InputError(fmt::format("{}:{}: holds a key of more than {} dots; allowed: keys of at most one dot", file,
                                 line, largest_key_dots));
  }
  try {
    const toml::table table = toml::parse(text, std::string_view(file));
    return {std::move(file), convert_table(table)};
  } catch (const toml::parse_error& error) {
    throw InputError(
        fmt::format("{}:{}: not valid TOML: {}", file, line_of(error.source()), on_one_line(error.description())));
  }
}

}  // namespace iclflow
