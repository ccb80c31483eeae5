// Uses the installed library; the headers and every library it stands on must be found by the package alone.
#include <iostream>

#include "iclflow/problem/initial.hpp"

int main() {
  iclflow::Problem problem;
  problem.task_dimensions = {2, 3};
  problem.signal_variance = {1.0, 1.0};
  problem.heads = 2;
  problem.context_length = 100;
  iclflow::validate(problem);
  const iclflow::InitialState start = iclflow::aligned_start(problem, 0.1, 2.0);
  std::cout << start.omega.cols() << '\n';
  return start.omega.cols() == 5 ? 0 : 1;
}
