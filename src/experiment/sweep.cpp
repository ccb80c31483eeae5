#include "iclflow/experiment/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "iclflow/experiment/checkpoint_file.hpp"
#include "iclflow/experiment/document_edit.hpp"

namespace iclflow {

namespace {

const Value* find(const Value& table, std::string_view key) {
  for (const auto& entry : table.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

/// The values of one swept key: a list, or a range.
std::vector<Value> read_values(const Section& section, const Value& table, const std::string& key) {
  const Value& value = *find(table, key);
  const std::string allowed = "a list of values, or a range { from, to, points | factor | step }";
  if (value.kind == Value::Kind::table) return read_range(section.section(key));
  if (value.kind != Value::Kind::array) section.fail(key, "wrong type", allowed);
  if (value.items.empty()) section.fail(key, "is an empty array: the sweep has no members", allowed);
  return value.items;
}

[[noreturn]] void too_many(const Section& section, const std::string& key) {
  section.fail(key, "makes too many members", fmt::format("at most {} members", largest_member_count));
}

/// Number of members: the product of the lists' lengths, or their common length.
std::size_t member_count(const Section& section, const std::vector<SweptKey>& keys, bool zipped) {
  std::size_t count = keys.front().values.size();
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const std::size_t own = keys[k].values.size();
    if (zipped && own != count) {
      section.fail(keys[k].path, fmt::format("has {} values, {} has {}", own, keys.front().path, count),
                   "lists of one length, as mode = \"zip\" takes them side by side");
    }
    if (!zipped && k > 0) {
      if (own > largest_member_count / count) too_many(section, keys[k].path);
      count *= own;
    }
  }
  if (count > largest_member_count) too_many(section, keys.front().path);
  return count;
}

std::string title_in(const Document& document) {
  const Value* title = find(document.root, "title");
  return title != nullptr && title->kind == Value::Kind::text ? title->text : std::string();
}

}  // namespace

bool is_sweep(const Document& document) { return find(document.root, "sweep") != nullptr; }

std::uint64_t member_seed(const std::string& member, std::uint64_t seed) {
  std::uint64_t hash = fingerprint(fmt::format("{}\n{}", member, seed));
  // the finaliser of SplitMix64: every bit of the hash reaches every bit of the seed
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  hash ^= hash >> 31U;
  return hash & static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

Sweep::Sweep(Document document, const Systems& systems, bool theory)
    : document_(std::move(document)), systems_(systems), theory_(theory) {
  title_ = title_in(document_);
  read_table();
  for (const char* key : {"sweep", "scaling", "check", "claim"}) remove(document_, key);
  for (std::size_t member = 0; member < size_; ++member) {
    Experiment made = experiment(member);
    if (member == 0 && title_.empty()) title_ = made.title;
  }
}

void Sweep::read_table() {
  const Section root(document_);
  const Section section = root.section("sweep");
  zipped_ = section.choice("mode", {{"cross", "zip"}}, "cross") == "zip";
  common_seeds_ = section.boolean("common_seeds", false);
  const bool named = section.has("names");
  const Value& table = *find(document_.root, "sweep");
  for (const std::string& key : section.keys()) {
    if (key.find('.') == std::string::npos) {
      if (key == "mode" || key == "names" || key == "common_seeds") continue;
      section.fail(key, "is not known here", "mode, names, common_seeds, and keys to sweep in quotes: \"table.key\"");
    }
    keys_.push_back({key, find(table, key)->line, read_values(section, table, key)});
  }
  if (keys_.empty()) root.fail("sweep", "sweeps no key, so it has no members", "at least one \"table.key\" = [values]");
  size_ = member_count(section, keys_, zipped_);
  if (named) {
    names_ = section.texts("names");
    if (names_.size() != size_) {
      section.fail("names", fmt::format("has {} entries for {} members", names_.size(), size_), "one name per member");
    }
  } else {
    names_ = default_names();
  }
  check_names(names_, named ? find(table, "names")->line : keys_.front().line);
  claim_ = read_claim(root);
  checks_ = read_checks(root);
  scalings_ = read_scalings(root);
}

const Value& Sweep::value(std::size_t member, std::size_t key) const {
  if (zipped_) return keys_.at(key).values.at(member);
  std::size_t rest = member;  // the last key changes fastest
  for (std::size_t k = keys_.size(); k-- > key + 1;) rest /= keys_[k].values.size();
  return keys_.at(key).values.at(rest % keys_[key].values.size());
}

Experiment Sweep::experiment(std::size_t member) const {
  Document own = document_;
  for (std::size_t k = 0; k < keys_.size(); ++k) assign(own, keys_[k].path, value(member, k), keys_[k].line);
  if (theory_) leave_simulations_out(own);
  Experiment experiment = make_experiment(own, systems_);
  const auto& parts = experiment.study->dynamics();
  const bool random = std::any_of(parts.begin(), parts.end(), [](const auto& part) { return !part.seeds.empty(); });
  if (random && !common_seeds_) {
    set_seeds(member, experiment, own);
    experiment = make_experiment(own, systems_);
  }
  experiment.title = fmt::format("{}: {}", experiment.title, name(member));
  experiment.theory_only = theory_;
  return experiment;
}

/// Seeds that the sweep itself sets are taken as they are.
void Sweep::set_seeds(std::size_t member, const Experiment& experiment, Document& document) const {
  for (const DynamicsPart& part : experiment.study->dynamics()) {
    const std::string path = part.table.empty() ? fmt::format("dynamics.{}", part.name) : part.table;
    const bool swept = std::any_of(keys_.begin(), keys_.end(), [&](const SweptKey& key) {
      return key.path == path + ".seeds" || key.path == path + ".seed";
    });
    if (part.seeds.empty() || swept) continue;
    Value seeds;
    seeds.kind = Value::Kind::array;
    for (const std::uint64_t seed : part.seeds) {
      Value own;
      own.kind = Value::Kind::integer;
      own.integer = static_cast<std::int64_t>(member_seed(name(member), seed));
      seeds.items.push_back(own);
    }
    assign(document, path + ".seeds", seeds, 1);
  }
}

}  // namespace iclflow
