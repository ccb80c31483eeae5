#include "iclflow/attention/thread_team.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <stdexcept>

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(thread_team, *boost::unit_test::label("parallel"))

namespace {

/// One lent thread for as long as the object lives.
class Lender {
 public:
  ~Lender() {
    back_ = true;
    IdleThreads::of_this_process().wake();
  }

 private:
  std::atomic<bool> back_{false};
  std::jthread thread_{[this] { IdleThreads::of_this_process().lend([this] { return back_.load(); }); }};
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_idle_thread_takes_parts_while_the_owner_is_busy) {
  const IdleThreads::Room room(1);
  ThreadTeam team(1);
  BOOST_TEST(team.size() == 2U);
  const Lender lender;
  while (IdleThreads::of_this_process().waiting() == 0) std::this_thread::yield();
  // The first part ends only when the second is done, which whoever runs the first cannot do.
  std::promise<void> second;
  std::future<void> done = second.get_future();
  std::atomic<bool> helped{false};
  team.run(2, [&](std::size_t part, std::size_t /*worker*/) {
    if (part == 1) second.set_value();
    if (part == 0) helped = done.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  });
  BOOST_TEST(helped);
}

BOOST_AUTO_TEST_CASE(every_part_runs_once_whoever_comes_and_goes) {
  const IdleThreads::Room room(2);
  for (const int threads : {1, 2}) {
    ThreadTeam team(threads);
    const Lender first, second;
    for (std::size_t job = 0; job < 200; ++job) {
      std::vector<std::atomic<int>> times(17);
      team.run(times.size(), [&](std::size_t part, std::size_t worker) {
        if (worker < team.size()) ++times[part];
      });
      for (const auto& count : times) BOOST_TEST(count == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failure_in_a_guests_part_reaches_the_owner) {
  const IdleThreads::Room room(1);
  ThreadTeam team(1);
  const Lender lender;
  for (int job = 0; job < 50; ++job) {
    BOOST_CHECK_THROW(team.run(8, [](std::size_t, std::size_t) { throw std::runtime_error("part"); }),
                      std::runtime_error);
  }
  team.run(3, [](std::size_t, std::size_t) {});
}

BOOST_AUTO_TEST_SUITE_END()
