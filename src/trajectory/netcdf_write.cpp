#include <algorithm>
#include <limits>
#include <netcdf>

#include "iclflow/trajectory/netcdf.hpp"
#include "netcdf_memory.hpp"

namespace iclflow {

namespace {

using netCDF::NcDim;
using netCDF::NcGroup;
using netCDF::NcVar;
constexpr double missing = std::numeric_limits<double>::quiet_NaN();

std::size_t longest(const DynamicsResult& result) {
  std::size_t samples = 0;
  for (const Trajectory& member : result.members) samples = std::max(samples, member.samples());
  return samples;
}

const Trajectory& longest_member(const DynamicsResult& result) {
  return *std::max_element(result.members.begin(), result.members.end(),
                           [](const auto& a, const auto& b) { return a.samples() < b.samples(); });
}

void describe(NcVar& variable, const std::string& long_name, const std::string& units) {
  variable.putAtt("long_name", long_name);
  variable.putAtt("units", units);
}

/// Rows of all members one after another, short members filled up with NaN.
template <typename Rows>
std::vector<double> padded(const DynamicsResult& result, std::size_t width, Rows rows) {
  const std::size_t samples = longest(result);
  std::vector<double> values;
  values.reserve(result.members.size() * samples * width);
  for (const Trajectory& member : result.members) {
    const std::vector<double>& own = rows(member);
    values.insert(values.end(), own.begin(), own.end());
    values.resize(values.size() + (samples - member.samples()) * width, missing);
  }
  return values;
}

/// Writes one result; `shared` holds the labelled dimensions (head, task, coordinate) that all results have in common.
class ResultWriter {
 public:
  ResultWriter(NcGroup& file, const DynamicsResult& result)
      : file_(file), result_(result), prefix_(result.name + "_") {}

  void write() {
    time_ = file_.addDim(prefix_ + "time", longest(result_));
    seeded_ = !result_.seeds.empty();
    members_ = seeded_ ? file_.addDim(prefix_ + "seed", result_.members.size()) : NcDim();
    write_time();
    write_members();
    write_observables();
    write_events();
  }

 private:
  [[nodiscard]] std::vector<NcDim> dimensions() const {
    return seeded_ ? std::vector<NcDim>{members_, time_} : std::vector<NcDim>{time_};
  }

  void write_time() {
    NcVar time = add_doubles(file_, prefix_ + "time", {time_});
    describe(time, "time", "1");
    time.putAtt("description", "clock of d theta/dt = -grad ell");
    time.putAtt("kind", result_.kind);
    time.putAtt("variant", result_.variant);
    time.putAtt("evaluations", netCDF::ncUint64, static_cast<unsigned long long>(result_.evaluations));
    time.putAtt("interrupted", netCDF::ncInt, result_.interrupted ? 1 : 0);
    time.putAtt("failure", result_.failure);
    time.putVar(longest_member(result_).times.data());
  }

  void write_members() {
    if (!seeded_) return;
    NcVar seed = file_.addVar(prefix_ + "seed", netCDF::ncUint64, members_);
    describe(seed, "seed", "1");
    std::vector<unsigned long long> seeds(result_.seeds.begin(), result_.seeds.end());
    seed.putVar(seeds.data());
    std::vector<unsigned long long> samples;
    for (const Trajectory& member : result_.members) samples.push_back(member.samples());
    NcVar counts = file_.addVar(prefix_ + "samples", netCDF::ncUint64, members_);
    describe(counts, "number of samples of each seed", "1");
    counts.putVar(samples.data());
    NcVar own = add_doubles(file_, prefix_ + "sample_time", dimensions());
    describe(own, "time of each seed's samples", "1");
    own.putVar(padded(
                   result_, 1, [](const Trajectory& member) -> const auto& { return member.times; })
                   .data());
  }

  NcDim labelled(const std::string& label, std::size_t size) {
    const NcDim known = file_.getDim(label);
    if (known.isNull()) return file_.addDim(label, size);
    if (known.getSize() == size) return known;
    const NcDim own = file_.getDim(prefix_ + label);
    return own.isNull() ? file_.addDim(prefix_ + label, size) : own;
  }

  void write_observables() {
    const Trajectory& pattern = result_.members.front();
    for (std::size_t k = 0; k < pattern.observables.size(); ++k) {
      const Observable& observable = pattern.observables[k];
      std::vector<NcDim> shape = dimensions();
      for (std::size_t j = 0; j < observable.dimensions.size(); ++j) {
        shape.push_back(labelled(observable.dimensions[j], observable.shape[j]));
      }
      NcVar variable = add_doubles(file_, prefix_ + observable.name, shape);
      describe(variable, observable.name, "1");
      variable.putAtt("description", observable.description);
      variable.putAtt("dynamics", result_.name);
      variable.putAtt("observable", observable.name);
      variable.putAtt("order", netCDF::ncInt, static_cast<int>(k));
      const auto rows = [&](const Trajectory& member) -> const auto& { return member.observables.at(k).values; };
      variable.putVar(padded(result_, observable.width(), rows).data());
    }
  }

  void write_events() {
    std::vector<double> times;
    std::vector<double> levels;
    std::vector<unsigned long long> members;
    std::vector<std::string> quantities;
    std::vector<std::string> directions;
    for (std::size_t m = 0; m < result_.members.size(); ++m) {
      for (const EventRecord& event : result_.members[m].events) {
        times.push_back(event.time);
        levels.push_back(event.level);
        members.push_back(m);
        quantities.push_back(event.quantity);
        directions.push_back(event.direction);
      }
    }
    if (times.empty()) return;
    const NcDim event = file_.addDim(prefix_ + "event", times.size());
    add_doubles(file_, prefix_ + "event_time", {event}).putVar(times.data());
    add_doubles(file_, prefix_ + "event_level", {event}).putVar(levels.data());
    file_.addVar(prefix_ + "event_member", netCDF::ncUint64, event).putVar(members.data());
    add_strings(file_, prefix_ + "event_quantity", event, quantities);
    add_strings(file_, prefix_ + "event_direction", event, directions);
  }

  NcGroup& file_;
  const DynamicsResult& result_;
  std::string prefix_;
  NcDim time_;
  NcDim members_;
  bool seeded_ = false;
};

bool has_samples(const DynamicsResult& result) { return !result.members.empty() && longest(result) > 0; }

void write_results(NcGroup& target, const std::vector<DynamicsResult>& results,
                   const std::map<std::string, std::string>& attributes) {
  for (const auto& [name, value] : attributes) target.putAtt(name, value);
  std::string names;
  for (const DynamicsResult& result : results) {
    if (!has_samples(result)) continue;
    names += names.empty() ? result.name : " " + result.name;
    ResultWriter(target, result).write();
  }
  target.putAtt("dynamics", names);
}

}  // namespace

void write_netcdf(const std::filesystem::path& file, const std::vector<DynamicsResult>& results,
                  const std::map<std::string, std::string>& attributes) {
  write_netcdf_file(file, [&](NcGroup& group) { write_results(group, results, attributes); });
}

}  // namespace iclflow
