#pragma once

#include <string>

#include "iclflow/experiment/report.hpp"
#include "page.hpp"

namespace iclflow::page {

// Parts of the page, each from summary.json; empty when the summary has nothing for it.
[[nodiscard]] std::string verdict(const Json& summary);
[[nodiscard]] std::string claim_section(const Json& summary);
[[nodiscard]] std::string checks_section(const Json& summary);
[[nodiscard]] std::string problem_section(const Json& summary);
[[nodiscard]] std::string prediction_section(const Json& summary);
[[nodiscard]] std::string dynamics_section(const Json& summary);
[[nodiscard]] std::string final_values_section(const Json& summary);
[[nodiscard]] std::string comparison_section(const Json& summary);
[[nodiscard]] std::string closures_section(const Json& summary);
[[nodiscard]] std::string leakage_section(const Json& summary);
[[nodiscard]] std::string evaluation_section(const Json& summary);
[[nodiscard]] std::string training_section(const Json& summary);
/// The table of a sweep.
[[nodiscard]] std::string members_section(const Report& report);

}  // namespace iclflow::page
