#include <algorithm>

#include "commands.hpp"
#include "iclflow/regression/regression.hpp"

namespace iclflow::cli {

Systems systems() {
  Systems all;
  all.push_back(make_regression());
  return all;
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace iclflow::cli
