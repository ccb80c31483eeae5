#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"

namespace iclflow {

/// [claim]: what an experiment is to show.
struct Claim {
  std::string statement;
  std::string source;
  void resolve(TomlText& text) const;
};

/// One [[check]]. Met when |measured - value| <= tolerance + standard_errors * SE and every rejected value is further
/// away than that; or when measured <= at_most, >= at_least.
struct Check {
  std::string statement;
  std::string quantity;  ///< path of a summary, or mean(..), min(..), max(..), ratio(.., ..), difference(.., ..)
  std::string members;   ///< glob on the members of a sweep that mean, min, max run over; empty: all
  std::optional<double> value;
  std::optional<double> at_most;
  std::optional<double> at_least;
  double tolerance = 0.0;        ///< systematic part, absolute
  double standard_errors = 4.0;  ///< multiplies the quantity's own standard error
  std::vector<double> rejected;
  void resolve(TomlText& text) const;
};

/// Throws InputError when a check's quantity is not well-formed.
void check_quantity(const Section& section, const Check& check);

[[nodiscard]] std::optional<Claim> read_claim(const Section& root);
[[nodiscard]] std::vector<Check> read_checks(const Section& root);

/// A number that was measured, and its standard error where there is one.
struct MeasuredNumber {
  double value = 0.0;
  std::optional<double> standard_error;
};

/// What quantities of checks are looked up in.
struct Quantities {
  /// A path's value; empty when there is none.
  std::function<std::optional<MeasuredNumber>(const std::string& path)> find;
  /// The values of a column over members whose name matches a glob (all when empty); an empty function where there are
  /// no members.
  std::function<std::vector<MeasuredNumber>(const std::string& column, const std::string& members)> column;
};

/// The value of a check's quantity; empty when it was not measured.
[[nodiscard]] std::optional<MeasuredNumber> measure(const Check& check, const Quantities& quantities);

/// `checks` of summary.json: [{statement, quantity, measured, standard_error, predicted, tolerance, rejected, met}].
/// met is null for what was not measured because the simulations were left out.
[[nodiscard]] nlohmann::ordered_json check_all(const std::vector<Check>& checks, const Quantities& quantities,
                                               bool theory_only);

/// Looks paths up in a run's summary.
[[nodiscard]] Quantities quantities_of(const nlohmann::ordered_json& summary);

/// One sentence for each check of a summary that is missed.
[[nodiscard]] std::vector<std::string> missed_checks(const nlohmann::ordered_json& summary);

/// Whether a name matches a glob (* and ?).
[[nodiscard]] bool matches(const std::string& name, const std::string& glob);

}  // namespace iclflow
