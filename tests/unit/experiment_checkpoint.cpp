#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "iclflow/experiment/checkpoint_file.hpp"
#include "iclflow/experiment/run_folder.hpp"

using namespace iclflow;

namespace {

struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("iclflow_checkpoint_" + std::to_string(::getpid()));
  ~File() { std::filesystem::remove(path); }
};

SavedMember member() {
  SavedMember saved;
  saved.done = true;
  saved.wall_seconds = 1.25;
  Checkpoint& checkpoint = saved.checkpoint;
  checkpoint.state = Eigen::VectorXd::LinSpaced(5, -1.0, 1.0 / 3.0);
  checkpoint.time = 0.1;
  checkpoint.step = std::numeric_limits<double>::infinity();
  checkpoint.step_count = 7;
  checkpoint.evaluations = 8;
  checkpoint.rejections = 9;
  checkpoint.event_sides = {-1, 0, 1};
  checkpoint.memory = {2.0, 1.0 / 3.0};
  Trajectory& run = checkpoint.trajectory;
  run.declare("mu", "description", {"head"}, {2});
  run.times = {0.0, 0.1};
  for (int k = 0; k < 2; ++k) run.append(0, std::vector<double>{0.1 * k, 1e-300});
  run.events.push_back({"loss", 0.5, "falling", 0.05});
  return saved;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_checkpoint)

BOOST_AUTO_TEST_CASE(everything_comes_back) {
  const File file;
  BOOST_TEST(!load_member(file.path, 1).has_value());
  const SavedMember saved = member();
  save_member(file.path, 1, saved);
  const auto loaded = load_member(file.path, 1);
  BOOST_REQUIRE(loaded.has_value());
  const Checkpoint& a = saved.checkpoint;
  const Checkpoint& b = loaded->checkpoint;
  BOOST_TEST(loaded->done);
  BOOST_TEST(loaded->wall_seconds == 1.25);
  BOOST_TEST((a.state.array() == b.state.array()).all());
  BOOST_TEST((a.time == b.time && a.step == b.step && a.step_count == b.step_count));
  BOOST_TEST((a.evaluations == b.evaluations && a.rejections == b.rejections));
  BOOST_TEST(a.event_sides == b.event_sides, boost::test_tools::per_element());
  BOOST_TEST((a.memory == b.memory));
  BOOST_TEST(a.trajectory.times == b.trajectory.times, boost::test_tools::per_element());
  BOOST_TEST(a.trajectory["mu"].values == b.trajectory["mu"].values, boost::test_tools::per_element());
  BOOST_TEST(b.trajectory["mu"].dimensions.at(0) == "head");
  BOOST_TEST(b.trajectory.events.at(0).time == 0.05);
}

BOOST_AUTO_TEST_CASE(damage_and_other_experiments_are_noticed) {
  const File file;
  save_member(file.path, 1, member());
  BOOST_CHECK_THROW(static_cast<void>(load_member(file.path, 2)), std::runtime_error);
  std::ifstream stream(file.path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  for (const std::size_t cut : {std::size_t{0}, std::size_t{10}, std::size_t{30}, bytes.size() - 1}) {
    write_whole(file.path, bytes.substr(0, cut));
    BOOST_CHECK_THROW(static_cast<void>(load_member(file.path, 1)), std::runtime_error);
  }
  for (std::size_t at = 0; at < bytes.size(); at += 13) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    write_whole(file.path, flipped);
    BOOST_CHECK_THROW(static_cast<void>(load_member(file.path, 1)), std::runtime_error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
