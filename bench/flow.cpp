// Whole integrations of the reduced flow by several steppers in turn, and, where SUNDIALS was found, by CVODE (BDF,
// SPGMR) with the same velocity and Hessian products. bench/flow runs it and writes the table.
//
// usage: iclflow_bench_flow CASES NAME STEPPER,STEPPER,... ROUNDS [full]     one JSON object: seconds by stepper and
// round
//        iclflow_bench_flow velocity SECONDS                                 microseconds of a right-hand side
#include <chrono>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/flow_case.hpp"
#include "iclflow/integrate/ode.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// A stepper that takes more than this many times the first one's time is stopped: it has lost.
constexpr double patience = 20.0;

json integrate(const iclflow::FlowCase& flow_case, const std::string& stepper, bool full, double limit) {
  const iclflow::SpectralFlow flow = flow_case.flow(full);
  iclflow::StepperOptions options;
  options.stepper = stepper;
  const auto begin = Clock::now();
  iclflow::Control control;
  std::uint64_t polls = 0;
  control.interrupted = [&] { return ++polls % 256 == 0 && seconds_since(begin) > limit; };
  const iclflow::Outcome outcome = iclflow::integrate(flow, {0.0, flow_case.final_time}, options, {}, control);
  json result{{"seconds", seconds_since(begin)}, {"steps", outcome.steps}, {"velocities", outcome.evaluations}};
  if (outcome.status == iclflow::Status::completed) {
    result["loss"] = outcome.trajectory.observables.front().values.back();
  } else if (outcome.status == iclflow::Status::failed) {
    result["failure"] = outcome.message;
  }
  return result;
}

int run_case(const std::string& file, const std::string& name, const std::string& list, int rounds, bool full) {
  const json cases = json::parse(std::ifstream(file));
  std::vector<std::string> steppers;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) steppers.push_back(word);
  for (const json& entry : cases) {
    if (entry.at("name") != name) continue;
    const iclflow::FlowCase flow_case(entry);
    const Eigen::VectorXd start = flow_case.flow(full).initial();
    json result{{"variables", start.size()}, {"start", std::vector<double>(start.begin(), start.end())}};
    double limit = std::numeric_limits<double>::infinity();
    for (int round = 0; round < rounds; ++round) {
      for (const std::string& stepper : steppers) {
        json& runs = result["runs"][stepper];
        if (runs.is_array() && !runs.back().contains("loss")) continue;
        runs.push_back(stepper == "cvode" ? iclflow::integrate_by_cvode(flow_case, full)
                                          : integrate(flow_case, stepper, full, limit));
        if (stepper == steppers.front()) limit = std::max(0.02, patience * runs.back()["seconds"].get<double>());
      }
    }
    std::cout << result << '\n';
    return 0;
  }
  std::cerr << "no case \"" << name << "\" in " << file << '\n';
  return 2;
}

/// Fastest of repeated batches of 1000 calls.
double microseconds(const iclflow::SpectralFlow& flow, double seconds) {
  const Eigen::VectorXd y = flow.initial();
  Eigen::VectorXd rate(y.size());
  double best = std::numeric_limits<double>::infinity();
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    const auto begin = Clock::now();
    for (int i = 0; i < 1000; ++i) flow.velocity(y, rate);
    best = std::min(best, seconds_since(begin) * 1e3);
  }
  return best;
}

int run_velocity(double seconds) {
  json result = json::array();
  for (const char* parametrisation : {"merged", "balanced", "imbalanced"}) {
    json entry{{"name", parametrisation}, {"heads", 8}, {"dimensions", std::vector<int>(8, 8)}, {"length", 100}};
    entry["scale"] = 0.2;
    entry["split"] = std::string(parametrisation) != "merged";
    entry["imbalance"] = std::string(parametrisation) == "imbalanced" ? 0.3 : 0.0;
    for (const bool full : {true, false}) {
      const iclflow::SpectralFlow flow = iclflow::FlowCase(entry).flow(full);
      result.push_back({{"name", parametrisation},
                        {"variables", flow.initial().size()},
                        {"microseconds", microseconds(flow, seconds)}});
    }
  }
  std::cout << result << '\n';
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() == 2 && arguments[0] == "velocity") return run_velocity(std::stod(arguments[1]));
  if (arguments.size() == 4 || arguments.size() == 5) {
    return run_case(arguments[0], arguments[1], arguments[2], std::stoi(arguments[3]), arguments.size() == 5);
  }
  std::cerr << "usage: iclflow_bench_flow CASES NAME STEPPER,STEPPER,... ROUNDS [full] | velocity SECONDS\n";
  return 2;
}
