#pragma once

#include <nlohmann/json.hpp>

/// A summary.json like that of a small run, for looking at the page without one.
namespace report_sample {

inline nlohmann::ordered_json summary() {
  return nlohmann::ordered_json::parse(R"json({
  "version": "0.1.0", "title": "Two tasks, two heads", "system": "regression", "status": "completed", "seeds": [1, 2, 3],
  "problem": {"heads": 2, "tasks": 2, "task_dimensions": [10, 10], "dimension": 20, "context_length": 500,
    "noise_variance": 0.0, "signal_variance": [1.0, 1.0], "response_scale": "unit", "response_factor": 1.0,
    "parametrisation": "split", "score_scale": "inverse-sqrt-embedding", "score_factor": 0.2132007163556104,
    "rotation": "identity", "signal_power": [10.0, 10.0], "noise_factor": [1.0, 1.0]},
  "prediction": {"dedicated": {"loss": 0.5156326, "mu": [2.9993, 2.9993], "omega": [0.3162278, 0.3162278]},
    "single_head": {"loss": 0.980587, "coefficient": 5.43656}, "best": {"coefficient": 1.0}, "single_to_dedicated": 2.0,
    "pair": null, "ridge": {"loss": 0.2012}, "gradient_step": {"loss": 0.4313},
    "warm_up": [{"head": 0, "warm_up_end": 3.12, "emergence_time": 5.83, "emergence_end": 8.31}, null]},
  "dynamics": [
    {"name": "theory", "kind": "spectral-flow", "closure": "large-context", "status": "completed", "seeds": [],
     "final_time": 24.0, "final_loss": 0.51801, "phases": {"warm_up_end": 3.4012, "emergence_time": 5.8301,
     "emergence_end": 8.2012}, "allocation": [0, 1], "allocation_ties": [[], []], "double_winners": [],
     "final_mu": [[2.9961, 0.0123], [0.0123, 2.9961]], "final_omega": [[0.31619, 0.00021], [0.00021, 0.31619]],
     "events": [], "evaluations": 1312, "wall_seconds": 0.0123},
    {"name": "simulation", "kind": "attention", "estimator": "tokens", "status": "completed", "seeds": [1, 2, 3],
     "final_time": 24.0, "final_loss": 0.52317, "final_loss_standard_error": 0.00041,
     "phases": {"warm_up_end": 3.4412, "emergence_time": 5.8822, "emergence_time_standard_error": 0.012,
     "emergence_end": null}, "allocation": [0, 1], "allocation_ties": [[], [0, 1]],
     "double_winners": [{"head": 1, "tasks": [0, 1]}],
     "final_mu": [[2.951, 0.011], [0.014, 2.967]], "final_mu_standard_error": [[0.012, 0.0041], [0.0038, 0.011]],
     "final_omega": [[0.3012, 0.0012], [-0.0008, 0.3022]],
     "final_omega_standard_error": [[0.0011, 0.0009], [0.0007, 0.0012]],
     "leakage": {"key_query": 0.0123, "cross": 0.0310, "output_value": 0.0712, "value_x": 0.1821},
     "leakage_standard_error": {"key_query": 0.0004, "cross": 0.0011, "output_value": 0.0025, "value_x": 0.0061},
     "events": [], "evaluations": 1440, "wall_seconds": 41.28}],
  "comparison": [{"theory": "theory", "simulation": "simulation", "loss_gap": 0.00412, "loss_gap_standard_error": 0.00031,
    "loss_gap_max": 0.0231, "loss_gap_max_standard_error": 0.0041, "emergence_time_gap": 0.00894,
    "emergence_time_gap_standard_error": null, "mu_gap": 0.0152, "mu_gap_standard_error": 0.0013, "omega_gap": 0.0301,
    "omega_gap_standard_error": 0.0012}],
  "expect": [{"key": "loss_gap", "allowed": 0.02, "value": 0.00412, "met": true}]
})json");
}

}  // namespace report_sample
