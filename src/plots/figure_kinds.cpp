#include "iclflow/plots/figure.hpp"

namespace iclflow {

const std::vector<FigureKind>& figure_kinds() {
  static const std::vector<FigureKind> kinds{
      {"loss", "population loss over time: theory, simulation with the seeds' band, phases, predicted limit"},
      {"spectrum", "mu and omega of every head and task over time, theory and simulation"},
      {"allocation", "each head's share of each task at chosen times, as heads x tasks heat maps"},
      {"leakage", "norms of the weights that the reduction says are zero, over time"},
      {"evaluation", "loss of final weights and classical estimators against context length, one panel per law"},
      {"scaling", "a summary's number over a sweep: points with errors, fitted and predicted law"},
      {"product", "s = a b of the two-parameter autoregressive flow over time; leakage of the simulation below"},
      {"modes", "linear attention: what has been learned of each covariance eigenvector, over time"},
      {"regimes", "E|p|^2 against the variance of the scores: exponential, exact, saturated (only when named)"},
      {"training", "autoregressive: loss of every seed over training, compressed and interpolated models, baselines"},
      {"positions", "autoregressive: loss against context length, models and baselines"},
      {"weights", "autoregressive: key-query and output-value products by head, blocks outlined"},
      {"probes", "autoregressive: errors of linear decoding by layer and context length, copy heads"},
      {"few-shot", "autoregressive: loss against the number of pairs, prompts, least-squares controls"},
  };
  return kinds;
}

}  // namespace iclflow
