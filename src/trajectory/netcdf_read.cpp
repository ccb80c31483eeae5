#include <fmt/format.h>

#include <algorithm>
#include <netcdf>
#include <set>
#include <stdexcept>

#include "iclflow/trajectory/netcdf.hpp"

namespace iclflow {

namespace {

using netCDF::NcDim;
using netCDF::NcFile;
using netCDF::NcGroup;
using netCDF::NcVar;

std::vector<double> doubles(const NcVar& variable) {
  std::size_t size = 1;
  for (const NcDim& dimension : variable.getDims()) size *= dimension.getSize();
  std::vector<double> values(size);
  variable.getVar(values.data());
  return values;
}

std::vector<unsigned long long> counts(const NcVar& variable) {
  std::vector<unsigned long long> values(variable.getDim(0).getSize());
  variable.getVar(values.data());
  return values;
}

std::vector<std::string> strings(const NcVar& variable) {
  std::vector<char*> pointers(variable.getDim(0).getSize());
  variable.getVar(pointers.data());
  std::vector<std::string> values(pointers.begin(), pointers.end());
  nc_free_string(pointers.size(), pointers.data());
  return values;
}

std::string text_attribute(const NcVar& variable, const std::string& name) {
  std::string text;
  variable.getAtt(name).getValues(text);
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  return text;
}

class ResultReader {
 public:
  ResultReader(const NcFile& file, const std::string& name) : file_(file), name_(name), prefix_(name + "_") {}

  DynamicsResult read() {
    DynamicsResult result;
    result.name = name_;
    const NcVar time = file_.getVar(prefix_ + "time");
    result.kind = text_attribute(time, "kind");
    result.variant = text_attribute(time, "variant");
    result.failure = text_attribute(time, "failure");
    unsigned long long evaluations = 0;
    time.getAtt("evaluations").getValues(&evaluations);
    result.evaluations = evaluations;
    int interrupted = 0;
    time.getAtt("interrupted").getValues(&interrupted);
    result.interrupted = interrupted != 0;
    read_times(time, result);
    for (const NcVar& variable : observables()) read_observable(variable, result);
    read_events(result);
    return result;
  }

 private:
  void read_times(const NcVar& time, DynamicsResult& result) {
    const std::vector<double> times = doubles(time);
    samples_ = times.size();
    const NcVar seed = file_.getVar(prefix_ + "seed");
    if (seed.isNull()) {
      result.members.resize(1);
      result.members[0].times = times;
      return;
    }
    for (const auto value : counts(seed)) result.seeds.push_back(value);
    const auto lengths = counts(file_.getVar(prefix_ + "samples"));
    const std::vector<double> own = doubles(file_.getVar(prefix_ + "sample_time"));
    result.members.resize(lengths.size());
    for (std::size_t m = 0; m < lengths.size(); ++m) {
      const auto begin = own.begin() + static_cast<std::ptrdiff_t>(m * samples_);
      result.members[m].times.assign(begin, begin + static_cast<std::ptrdiff_t>(lengths[m]));
    }
  }

  /// The variables of this dynamics in the order in which they were declared.
  [[nodiscard]] std::vector<NcVar> observables() const {
    std::vector<std::pair<int, NcVar>> found;
    for (const auto& [variable_name, variable] : file_.getVars()) {
      if (variable.getAtts().count("observable") == 0 || text_attribute(variable, "dynamics") != name_) continue;
      int order = 0;
      variable.getAtt("order").getValues(&order);
      found.emplace_back(order, variable);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<NcVar> variables;
    for (auto& [order, variable] : found) variables.push_back(std::move(variable));
    return variables;
  }

  void read_observable(const NcVar& variable, DynamicsResult& result) const {
    Observable pattern{text_attribute(variable, "observable"), text_attribute(variable, "description"), {}, {}, {}};
    const std::vector<NcDim> shape = variable.getDims();
    for (std::size_t j = result.seeds.empty() ? 1 : 2; j < shape.size(); ++j) {
      std::string label = shape[j].getName();
      if (label.substr(0, prefix_.size()) == prefix_) label.erase(0, prefix_.size());
      pattern.dimensions.push_back(std::move(label));
      pattern.shape.push_back(shape[j].getSize());
    }
    const std::vector<double> values = doubles(variable);
    const std::size_t width = pattern.width();
    for (std::size_t m = 0; m < result.members.size(); ++m) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(m * samples_ * width);
      Observable own = pattern;
      own.values.assign(begin, begin + static_cast<std::ptrdiff_t>(result.members[m].samples() * width));
      result.members[m].observables.push_back(std::move(own));
    }
  }

  void read_events(DynamicsResult& result) const {
    const NcVar time = file_.getVar(prefix_ + "event_time");
    if (time.isNull()) return;
    const std::vector<double> times = doubles(time);
    const std::vector<double> levels = doubles(file_.getVar(prefix_ + "event_level"));
    const auto members = counts(file_.getVar(prefix_ + "event_member"));
    const auto quantities = strings(file_.getVar(prefix_ + "event_quantity"));
    const auto directions = strings(file_.getVar(prefix_ + "event_direction"));
    for (std::size_t k = 0; k < times.size(); ++k) {
      result.members.at(members[k]).events.push_back({quantities[k], levels[k], directions[k], times[k]});
    }
  }

  const NcFile& file_;
  std::string name_;
  std::string prefix_;
  std::size_t samples_ = 0;
};

}  // namespace

std::vector<DynamicsResult> read_netcdf(const std::filesystem::path& file) {
  try {
    const NcFile source(file.string(), NcFile::read);
    std::string names;
    source.getAtt("dynamics").getValues(names);
    std::vector<DynamicsResult> results;
    std::size_t begin = 0;
    while (begin < names.size()) {
      const std::size_t end = std::min(names.find(' ', begin), names.size());
      results.push_back(ResultReader(source, names.substr(begin, end - begin)).read());
      begin = end + 1;
    }
    return results;
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}: cannot be read as a trajectory: {}", file.string(), error.what()));
  }
}

}  // namespace iclflow
