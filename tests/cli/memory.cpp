// Contexts are streamed: the program's peak memory does not grow with the batch or the evaluation set.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "program.hpp"

BOOST_AUTO_TEST_SUITE(memory)

namespace {

/// Peak resident memory (KiB) of a run, waited for in a child of its own so that earlier programs do not count.
long peak_memory(const program::Scratch& scratch, const std::string& name, const std::string& batch) {
  const std::string file = scratch.write(name + ".toml", R"(
[problem]
heads = 2
task_dimensions = [10, 10]
context_length = 50
[initial]
preset = "aligned"
scale = 0.05
[time]
final = 0.2
samples = 2
[[dynamics]]
name = "simulation"
kind = "attention"
learning_rate = 0.1
batch = )" + batch + "\nevaluation_contexts = " + batch + "\n[report]\nfigures = []\n");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string out = (scratch / name).string();
    ::execl(ICLFLOW_PROGRAM, "iclflow", "run", file.c_str(), "--out", out.c_str(), "--quiet", nullptr);
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage {};
  BOOST_REQUIRE(::wait4(child, &status, 0, &usage) == child);
  BOOST_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return usage.ru_maxrss;
}

}  // namespace

// Sanitizers keep freed memory and shadows of their own: the figure means nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool measurable = false;
#else
constexpr bool measurable = true;
#endif

BOOST_AUTO_TEST_CASE(peak_memory_is_the_same_at_batch_1000_and_100000, *boost::unit_test::enable_if<measurable>()) {
  const program::Scratch scratch;
  const auto small = static_cast<double>(peak_memory(scratch, "small", "1000"));
  const auto large = static_cast<double>(peak_memory(scratch, "large", "100000"));
  // 10^5 contexts of 22 x 50 doubles would be 880 MB; what remains is the allocator's and the loader's scatter.
  BOOST_TEST(std::abs(large - small) < 0.05 * small, small << " KiB, " << large << " KiB");
}

BOOST_AUTO_TEST_SUITE_END()
