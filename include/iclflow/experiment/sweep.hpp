#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/experiment/check.hpp"
#include "iclflow/experiment/experiment.hpp"
#include "iclflow/experiment/scaling.hpp"

namespace iclflow {

/// A key of [sweep] with a dot in its name: the key of the experiment that it replaces, and what by.
struct SweptKey {
  std::string path;  ///< e.g. "problem.context_length"
  int line = 1;      ///< where it stands in the file
  std::vector<Value> values;
};

/// An experiment file with a [sweep] table: many experiments that differ in the swept keys. Members are made when they
/// are asked for, so that a large sweep takes no memory.
class Sweep {
 public:
  /// Reads the file and every member of it. Throws InputError for whatever cannot be meant.
  /// theory: leaves the simulations out.
  Sweep(Document document, const Systems& systems, bool theory);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::string& title() const { return title_; }
  [[nodiscard]] const std::vector<SweptKey>& keys() const { return keys_; }
  [[nodiscard]] const std::string& name(std::size_t member) const { return names_.at(member); }
  /// The value of swept key `key` in a member.
  [[nodiscard]] const Value& value(std::size_t member, std::size_t key) const;
  /// Member by member; safe to call from several threads.
  [[nodiscard]] Experiment experiment(std::size_t member) const;

  [[nodiscard]] const std::optional<Claim>& claim() const { return claim_; }
  [[nodiscard]] const std::vector<Check>& checks() const { return checks_; }
  [[nodiscard]] const std::vector<Scaling>& scalings() const { return scalings_; }
  [[nodiscard]] bool theory_only() const { return theory_; }

 private:
  void read_table();
  [[nodiscard]] std::vector<std::string> default_names() const;
  void check_names(const std::vector<std::string>& names, int line) const;
  void set_seeds(std::size_t member, const Experiment& experiment, Document& document) const;

  Document document_;  ///< without the tables that only a sweep has
  const Systems& systems_;
  bool theory_;
  bool zipped_ = false;
  bool common_seeds_ = false;
  std::string title_;
  std::vector<SweptKey> keys_;
  std::size_t size_ = 0;
  std::vector<std::string> names_;
  std::optional<Claim> claim_;
  std::vector<Check> checks_;
  std::vector<Scaling> scalings_;
};

/// Members of a sweep that one file may have.
inline constexpr std::size_t largest_member_count = 100'000;

/// The numbers of a range { from, to, points | factor | step [, spacing] }. Throws InputError, also when it never ends.
[[nodiscard]] std::vector<Value> read_range(const Section& range);

/// Whether the document has a [sweep] table.
[[nodiscard]] bool is_sweep(const Document& document);

/// A simulation's seed in a member, from the file's and the member's name: the same whatever the other members are, in
/// whatever order and by whatever process they are run.
[[nodiscard]] std::uint64_t member_seed(const std::string& member, std::uint64_t seed);

}  // namespace iclflow
