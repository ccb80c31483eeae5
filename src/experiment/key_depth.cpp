#include "key_depth.hpp"

#include <algorithm>

namespace iclflow {

namespace {

/// End of the string that begins at `begin`, as far as the text goes.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const std::string_view three = text.substr(begin, 3);
  const bool long_string = three.size() == 3 && three[1] == quote && three[2] == quote;
  const std::string_view mark = long_string ? three : three.substr(0, 1);
  for (std::size_t at = begin + mark.size(); at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text.substr(at, mark.size()) == mark) {
      return at + mark.size();
    } else if (text[at] == '\n' && !long_string) {
      return at;  // unfinished: the parser's to refuse
    }
  }
  return text.size();
}

bool in_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == ' ' || c == '\t';
}

}  // namespace

int line_of_deep_key(std::string_view text) {
  int line = 1;
  int dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t next = at + 1;
    if (c == '"' || c == '\'') {
      next = end_of_string(text, at);
    } else if (c == '#') {
      next = std::min(text.find('\n', at), text.size());
    } else if (c == '.') {
      if (++dots > largest_key_dots) return line;
    } else if (!in_key(c)) {
      dots = 0;
    }
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                        text.begin() + static_cast<std::ptrdiff_t>(std::min(next, text.size())), '\n'));
    at = next;
  }
  return 0;
}

}  // namespace iclflow
