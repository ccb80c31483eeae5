#include "iclflow/trajectory/netcdf.hpp"

#include <unistd.h>

#include <bit>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

using namespace iclflow;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("iclflow_netcdf_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

Trajectory member(std::size_t samples, double offset) {
  Trajectory run;
  const auto loss = run.declare("loss", "half the squared error");
  const auto mu = run.declare("mu", "output-value", {"head", "task"}, {2, 3});
  for (std::size_t k = 0; k < samples; ++k) {
    run.times.push_back(0.1 * static_cast<double>(k) + (k + 1 == samples ? offset * 1e-3 : 0.0));
    run.append(loss, 1.0 / (3.0 + static_cast<double>(k) + offset));
    std::vector<double> row;
    for (int j = 0; j < 6; ++j) row.push_back(offset * 1e-17 + j / 7.0);
    run.append(mu, row);
  }
  return run;
}

std::vector<DynamicsResult> results() {
  DynamicsResult theory{"theory", "spectral-flow", "large-context", {}, {member(4, 0.0)}, 123, 0.0, false, ""};
  theory.members[0].events.push_back({"loss", 0.3, "falling", 0.1 / 3.0});
  DynamicsResult simulation{"sim-1", "attention", "tokens", {7, 9}, {member(5, 0.1), member(3, 0.2)},
                            8,       0.0,         true,     "t"};
  simulation.members[1].events.push_back({"mu[0][1]", 0.5, "rising", 0.17});
  return {theory, simulation};
}

void check_equal(const Trajectory& a, const Trajectory& b) {
  BOOST_TEST(a.times == b.times, boost::test_tools::per_element());
  BOOST_REQUIRE_EQUAL(a.observables.size(), b.observables.size());
  for (std::size_t k = 0; k < a.observables.size(); ++k) {
    const Observable& x = a.observables[k];
    const Observable& y = b.observables[k];
    BOOST_TEST(x.name == y.name);
    BOOST_TEST(x.description == y.description);
    BOOST_TEST(x.dimensions == y.dimensions, boost::test_tools::per_element());
    BOOST_TEST(x.shape == y.shape, boost::test_tools::per_element());
    BOOST_REQUIRE_EQUAL(x.values.size(), y.values.size());
    for (std::size_t j = 0; j < x.values.size(); ++j) {
      BOOST_TEST(std::bit_cast<std::uint64_t>(x.values[j]) == std::bit_cast<std::uint64_t>(y.values[j]));
    }
  }
  BOOST_REQUIRE_EQUAL(a.events.size(), b.events.size());
  for (std::size_t k = 0; k < a.events.size(); ++k) {
    BOOST_TEST(a.events[k].quantity == b.events[k].quantity);
    BOOST_TEST(a.events[k].direction == b.events[k].direction);
    BOOST_TEST(a.events[k].level == b.events[k].level);
    BOOST_TEST(a.events[k].time == b.events[k].time);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(netcdf)

BOOST_AUTO_TEST_CASE(everything_comes_back_bit_for_bit) {
  const Folder folder;
  const auto written = results();
  write_netcdf(folder.path / "t.nc", written, {{"title", "a \"title\""}});
  BOOST_TEST(!std::filesystem::exists(folder.path / "t.nc.part"));
  const auto read = read_netcdf(folder.path / "t.nc");
  BOOST_REQUIRE_EQUAL(read.size(), written.size());
  for (std::size_t k = 0; k < read.size(); ++k) {
    BOOST_TEST(read[k].name == written[k].name);
    BOOST_TEST(read[k].kind == written[k].kind);
    BOOST_TEST(read[k].variant == written[k].variant);
    BOOST_TEST(read[k].seeds == written[k].seeds, boost::test_tools::per_element());
    BOOST_TEST(read[k].evaluations == written[k].evaluations);
    BOOST_TEST(read[k].interrupted == written[k].interrupted);
    BOOST_TEST(read[k].failure == written[k].failure);
    BOOST_REQUIRE_EQUAL(read[k].members.size(), written[k].members.size());
    for (std::size_t m = 0; m < read[k].members.size(); ++m) check_equal(read[k].members[m], written[k].members[m]);
  }
}

BOOST_AUTO_TEST_CASE(dynamics_of_other_shape_get_their_own_dimensions) {
  const Folder folder;
  auto written = results();
  written[1].members.assign(2, Trajectory{});
  for (Trajectory& run : written[1].members) {
    const auto mu = run.declare("mu", "", {"head", "task"}, {1, 1});
    run.times.push_back(0.0);
    run.append(mu, 2.5);
  }
  write_netcdf(folder.path / "t.nc", written, {});
  const auto read = read_netcdf(folder.path / "t.nc");
  BOOST_TEST(read.at(1).members.at(1)["mu"].dimensions == written[1].members[1]["mu"].dimensions,
             boost::test_tools::per_element());
  BOOST_TEST(read.at(1).members.at(1)["mu"].last()[0] == 2.5);
}

BOOST_AUTO_TEST_CASE(failures_name_the_file) {
  const Folder folder;
  const auto names_it = [](const std::runtime_error& error) {
    return std::string(error.what()).find("t.nc") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(write_netcdf(folder.path / "none" / "t.nc", results(), {}), std::runtime_error, names_it);
  std::ofstream(folder.path / "t.nc") << "not a trajectory";
  BOOST_CHECK_EXCEPTION(static_cast<void>(read_netcdf(folder.path / "t.nc")), std::runtime_error, names_it);
}

BOOST_AUTO_TEST_SUITE_END()
