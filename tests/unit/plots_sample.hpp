#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "iclflow/plots/allocation_figure.hpp"
#include "iclflow/plots/leakage_figure.hpp"
#include "iclflow/plots/loss_figure.hpp"
#include "iclflow/plots/spectrum_figure.hpp"

/// Curves shaped like those of a run (logistic falls with sampling noise), so that figures can be judged without one.
namespace plots_sample {

inline double logistic(double t, double centre, double width) { return 1.0 / (1.0 + std::exp(-(t - centre) / width)); }

inline std::vector<double> times(double end, int count) {
  std::vector<double> result;
  for (int k = 0; k < count; ++k) result.push_back(end * k / (count - 1));
  return result;
}

inline double emergence(int task) { return 5.0 + 1.6 * task; }

inline iclflow::Curve loss_curve(const std::string& label, int tasks, double noise, double shift) {
  std::mt19937_64 generator(3);
  std::normal_distribution<double> normal;
  iclflow::Curve curve{label, times(24.0, 241), {}, {}};
  for (const double t : curve.times) {
    double loss = 0.0;
    for (int i = 0; i < tasks; ++i) loss += 5.0 - 3.9 * logistic(t, emergence(i) + shift, 0.7);
    const double error = noise * (0.02 + 0.15 * std::exp(-0.1 * (t - 6.0) * (t - 6.0)));
    curve.values.push_back(loss + error * normal(generator));
    if (noise > 0.0) curve.standard_error.push_back(error);
  }
  return curve;
}

inline iclflow::LossFigure loss(int tasks = 2) {
  iclflow::LossFigure figure;
  figure.title = "Two tasks, two heads";
  figure.theory = {loss_curve("theory (large-context)", tasks, 0.0, 0.0)};
  figure.simulation = {loss_curve("simulation, mean of 3 seeds ± 2 s.e.", tasks, 1.0, 0.1)};
  figure.theory_phases = iclflow::find_phases(figure.theory[0].times, figure.theory[0].values, 1.1 * tasks);
  figure.simulation_phases = {
      iclflow::find_phases(figure.simulation[0].times, figure.simulation[0].values, 1.1 * tasks)};
  figure.levels = {{"dedicated limit 2.137", 1.05 * tasks}};
  iclflow::Curve difference = figure.simulation[0];
  for (std::size_t k = 0; k < difference.values.size(); ++k) {
    difference.values[k] = (difference.values[k] - figure.theory[0].values[k]) / (5.0 * tasks);
    difference.standard_error[k] /= 5.0 * tasks;
  }
  figure.difference = {difference};
  return figure;
}

inline iclflow::SpectrumSeries spectrum_series(const std::string& label, int heads, int tasks, bool simulation) {
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  iclflow::SpectrumSeries series{label, simulation, times(24.0, 241), {}, {}, {}, {}};
  for (const double t : series.times) {
    for (int h = 0; h < heads; ++h) {
      for (int i = 0; i < tasks; ++i) {
        const double grown = logistic(t, emergence(i) + (simulation ? 0.1 : 0.0), 0.7);
        const bool own = h % tasks == i && h < tasks;
        const double noise = simulation ? 0.03 * normal(generator) : 0.0;
        series.mu.push_back((own ? 2.4 * grown : 0.1 * std::exp(-0.2 * t)) + 0.02 * h + noise);
        series.omega.push_back((own ? 0.31 * grown : 0.02 * std::exp(-0.1 * t)) + 0.1 * noise);
        if (simulation) {
          series.mu_standard_error.push_back(0.03);
          series.omega_standard_error.push_back(0.003);
        }
      }
    }
  }
  return series;
}

inline iclflow::SpectrumFigure spectrum(int heads = 2, int tasks = 2) {
  iclflow::SpectrumFigure figure;
  figure.title = "Two tasks, two heads";
  figure.heads = heads;
  figure.tasks = tasks;
  figure.series = {spectrum_series("theory", heads, tasks, false), spectrum_series("simulation", heads, tasks, true)};
  figure.predicted_mu.assign(static_cast<std::size_t>(tasks), 2.45);
  figure.predicted_omega.assign(static_cast<std::size_t>(tasks), 0.316);
  return figure;
}

inline std::vector<double> shares(int heads, int tasks, double sharpness) {
  std::vector<double> result;
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < tasks; ++i) {
      const double even = 1.0 / heads;
      result.push_back(even + sharpness * ((h == i % heads ? 1.0 : 0.0) - even));
    }
  }
  return result;
}

inline iclflow::AllocationFigure allocation(int heads = 2, int tasks = 2) {
  iclflow::AllocationFigure figure;
  figure.title = "Two tasks, two heads";
  figure.heads = heads;
  figure.tasks = tasks;
  figure.moments = {"start", "warm-up end", "emergence", "end"};
  for (const std::string label : {"theory", "simulation"}) {
    iclflow::ShareRow row{label, {}};
    for (const auto& [time, sharpness] : {std::pair{0.0, 0.6}, {3.1, 0.7}, {5.83, 0.93}, {24.0, 1.0}}) {
      row.maps.push_back({time, shares(heads, tasks, sharpness)});
    }
    figure.rows.push_back(row);
  }
  return figure;
}

inline iclflow::LeakageFigure leakage() {
  iclflow::LeakageFigure figure;
  figure.title = "Two tasks, two heads";
  iclflow::LeakageSeries series{"simulation, mean of 3 seeds ± 2 s.e.", {}};
  std::mt19937_64 generator(9);
  std::normal_distribution<double> normal;
  for (std::size_t norm = 0; norm < 4; ++norm) {
    iclflow::Curve& curve = series.norms[norm];
    curve.times = times(24.0, 241);
    for (const double t : curve.times) {
      const double level = t == 0.0 ? 0.0 : 0.02 * std::pow(2.2, static_cast<double>(norm)) * std::sqrt(t / (t + 8.0));
      curve.values.push_back(level * (1.0 + 0.05 * normal(generator)));
      curve.standard_error.push_back(0.08 * level);
    }
  }
  figure.series = {series};
  iclflow::Curve mu{"|mu| (diagonal)", times(24.0, 241), {}, {}};
  iclflow::Curve omega{"|omega| (diagonal)", mu.times, {}, {}};
  for (const double t : mu.times) {
    mu.values.push_back(0.2 + 3.3 * logistic(t, 6.0, 0.8));
    omega.values.push_back(0.04 + 1.4 * logistic(t, 6.0, 0.8));
  }
  figure.diagonal = {mu, omega};
  return figure;
}

}  // namespace plots_sample
