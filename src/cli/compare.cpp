#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "commands.hpp"
#include "iclflow/analysis/comparison.hpp"

namespace iclflow::cli {

namespace {

using Results = std::vector<DynamicsResult>;

Results read_run(const std::string& path) { return read_trajectory(RunFolder::open(path)); }

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

bool same_bits(const Trajectory& a, const Trajectory& b) {
  if (!same_bits(a.times, b.times) || a.observables.size() != b.observables.size()) return false;
  for (std::size_t k = 0; k < a.observables.size(); ++k) {
    const Observable& x = a.observables[k];
    const Observable& y = b.observables[k];
    if (x.name != y.name || x.shape != y.shape || !same_bits(x.values, y.values)) return false;
  }
  return true;
}

bool same_bits(const Results& a, const Results& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const DynamicsResult& x, const DynamicsResult& y) {
    return x.name == y.name && x.seeds == y.seeds &&
           std::equal(x.members.begin(), x.members.end(), y.members.begin(), y.members.end(),
                      [](const Trajectory& p, const Trajectory& q) { return same_bits(p, q); });
  });
}

/// The seeds' mean as the one member that compare() takes for its reference.
DynamicsResult mean_of(const DynamicsResult& result) {
  DynamicsResult mean{result.name, result.kind, result.variant, {}, {Trajectory{}}, 0, 0.0, false, {}};
  Trajectory& run = mean.members.front();
  for (const char* name : {"loss", "mu", "omega_block"}) {
    if (!result.members.front().has(name)) continue;
    const Band band = seed_band(result, name);
    const Observable& pattern = result.members.front()[name];
    run.times = band.times;
    run.declare(name, pattern.description, pattern.dimensions, pattern.shape);
    run.observables.back().values = band.mean;
  }
  return mean;
}

std::string shown(const std::optional<Estimate>& gap) {
  if (!gap || !std::isfinite(gap->value)) return "none";
  const std::string text = fmt::format("{:.4g}", gap->value);
  return gap->standard_error ? fmt::format("{} +- {:.1g}", text, *gap->standard_error) : text;
}

void print_pair(const DynamicsResult& reference, const DynamicsResult& other) {
  std::cout << fmt::format("{:<20}{:<20}", reference.name, other.name);
  try {
    const DynamicsResult mean = mean_of(reference);
    if (mean.members.front().samples() < 2 || seed_band(other, "loss").times.size() < 2) {
      throw std::invalid_argument("fewer than two samples");
    }
    const double end_loss = mean.members.front()["loss"].last()[0];
    if (!mean.members.front().has("mu")) {  // another system's: only the loss is common to all
      const double scale = std::abs(mean.members.front()["loss"].at(0)[0]);
      std::cout << fmt::format("{:<22}{}\n", shown(observable_gap(mean, other, "loss", scale).mean),
                               shown(emergence_time_gap(mean, other, end_loss)));
      return;
    }
    const Comparison gaps = compare(mean, other, end_loss);
    std::cout << fmt::format("{:<22}{:<22}{:<22}{}\n", shown(gaps.loss_gap), shown(gaps.emergence_time_gap),
                             shown(gaps.mu_gap), shown(gaps.omega_gap));
  } catch (const std::exception& error) {
    std::cout << "not comparable: " << error.what() << '\n';
  }
}

int compare_runs(const std::string& first, const std::string& second) {
  const Results a = read_run(first);
  const Results b = read_run(second);
  std::cout << fmt::format("reference: {}\n", one_line(first)) << fmt::format("compared:  {}\n", one_line(second));
  std::cout << "gaps: mean over time of |difference|, relative to the reference's initial loss, its emergence time,\n"
               "its largest final mu and omega; +- standard error over seeds\n\n";
  std::cout << fmt::format("{:<20}{:<20}{:<22}{:<22}{:<22}{}\n", "reference", "compared", "loss", "emergence time",
                           "mu", "omega");
  for (const DynamicsResult& reference : a) {
    for (const DynamicsResult& other : b) print_pair(reference, other);
  }
  std::cout << (same_bits(a, b) ? "\nall arrays are bit-identical\n" : "\nthe arrays differ\n");
  return done;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("compare", "all dynamics of one run against all of another");
  auto runs = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("REFERENCE", runs->first, "run folder")->required();
  command->add_option("COMPARED", runs->second, "run folder")->required();
  command->callback([&action, runs] { action = [runs] { return compare_runs(runs->first, runs->second); }; });
}

}  // namespace iclflow::cli
