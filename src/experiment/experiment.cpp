#include "iclflow/experiment/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace iclflow {

namespace {

// One run keeps all its samples in memory: 2.5e8 numbers are 2 GB.
constexpr double largest_recorded_values = 2.5e8;

const System& find_system(const Section& root, const Systems& systems) {
  Choices choices{{}, {"autoregressive"}};
  for (const auto& system : systems) {
    choices.allowed.push_back(system->name());
    std::erase(choices.planned, system->name());
  }
  const std::string name = root.choice("system", choices, std::string(systems.front()->name()));
  return **std::find_if(systems.begin(), systems.end(), [&](const auto& system) { return system->name() == name; });
}

/// A file's name need not be UTF-8, a title must: what is not becomes U+FFFD.
std::string title_of(const std::string& file) {
  using Json = nlohmann::json;
  const Json stem = std::filesystem::path(file).stem().string();
  return Json::parse(stem.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

void check_names(const Section& root, const Study& study) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  const std::string allowed = "one to 64 of the characters A-Z a-z 0-9 _ -, different for each dynamics";
  std::set<std::string> seen;
  const auto sections = root.sections("dynamics");
  for (std::size_t k = 0; k < study.dynamics().size(); ++k) {
    const std::string& name = study.dynamics()[k].name;
    if (name.empty() || name.size() > 64 || name.find_first_not_of(letters) != std::string::npos) {
      sections.at(k).fail("name", fmt::format("impossible value ({})", TomlText::quoted(name.substr(0, 64))), allowed);
    }
    if (!seen.insert(name).second) sections.at(k).fail("name", fmt::format("used twice (\"{}\")", name), allowed);
  }
  for (std::size_t k = 0; k < study.dynamics().size(); ++k) {
    const std::string& name = study.dynamics()[k].name;
    // trajectory.nc calls its variables NAME_time, NAME_event_time, NAME_sample_time
    for (const std::string_view part : {"_event", "_sample"}) {
      if (!name.ends_with(part) || seen.count(name.substr(0, name.size() - part.size())) == 0) continue;
      sections.at(k).fail("name", fmt::format("impossible beside another dynamics of the name without {}", part),
                          allowed);
    }
  }
}

std::optional<SampleTimes> read_time(const Section& root, const Study& study) {
  const auto& dynamics = study.dynamics();
  const bool needed = std::any_of(dynamics.begin(), dynamics.end(), [](const auto& part) { return part.needs_time; });
  const auto section = needed ? std::optional(root.section("time")) : root.find_section("time");
  if (!section) return std::nullopt;
  SampleTimes time = read_sample_times(*section);
  double recorded = 0.0;
  for (std::size_t k = 0; k < dynamics.size(); ++k) {
    recorded += (time.samples + 1.0) * static_cast<double>(study.values_per_sample(k) * dynamics[k].members());
  }
  if (recorded > largest_recorded_values) {
    section->fail("samples",
                  fmt::format("impossible value ({}): {:.2g} numbers would be recorded", time.samples, recorded),
                  fmt::format("so many samples that at most {:.2g} numbers are recorded", largest_recorded_values));
  }
  for (std::size_t k = 0; k < dynamics.size(); ++k) {
    try {
      study.check_times(k, time.times());
    } catch (const std::invalid_argument& error) {
      section->fail("samples", fmt::format("dynamics \"{}\": {}", dynamics[k].name, error.what()));
    }
  }
  return time;
}

std::vector<Event> read_events(const Section& root, const Study& study) {
  std::vector<Event> events;
  for (const Section& section : root.sections("event")) {
    Event event;
    event.quantity = section.text("quantity");
    if (!study.has_quantity(event.quantity)) {
      section.fail("quantity", fmt::format("unknown value ({})", TomlText::quoted(event.quantity)), study.quantities());
    }
    event.level = section.number("level", Sign::any);
    event.direction = section.choice("direction", {{"falling", "rising"}}, "falling") == "rising" ? Direction::rising
                                                                                                  : Direction::falling;
    event.terminal = section.boolean("terminal", false);
    section.finish();
    events.push_back(event);
  }
  return events;
}

std::vector<Expectation> read_expectations(const Section& root, const Study& study) {
  std::vector<Expectation> expectations;
  const auto section = root.find_section("expect");
  if (!section) return expectations;
  const auto allowed = study.expectations();
  for (const std::string& key : section->keys()) {
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      section->fail(key, "is not known here",
                    allowed.empty() ? "nothing, as there is no theory and simulation to compare" : listed(allowed));
    }
    expectations.push_back({key, section->number(key, Sign::non_negative)});
  }
  return expectations;
}

std::vector<std::string> read_figures(const Section& root, const Study& study) {
  auto available = study.figures();
  const auto section = root.find_section("report");
  if (!section || !section->has("figures")) {
    if (section) section->finish();
    return {available.begin(), available.end()};
  }
  for (const std::string_view figure : study.further_figures()) available.push_back(figure);
  std::vector<std::string> figures = section->texts("figures");
  section->finish();
  std::set<std::string> seen;
  for (const std::string& figure : figures) {
    if (std::find(available.begin(), available.end(), figure) == available.end()) {
      section->fail("figures",
                    fmt::format("unknown value, or not drawable of these dynamics ({})", TomlText::quoted(figure)),
                    listed(available));
    }
    if (!seen.insert(figure).second)
      section->fail("figures", fmt::format("named twice (\"{}\")", figure), listed(available));
  }
  return figures;
}

void resolve_generic(const Experiment& experiment, TomlText& text) {
  if (experiment.time) experiment.time->resolve(text);
  experiment.study->resolve(text);
  for (const Event& event : experiment.events) {
    text.element("event");
    text.put("quantity", event.quantity);
    text.put("level", event.level);
    text.put("direction", event.direction == Direction::rising ? "rising" : "falling");
    text.put("terminal", event.terminal);
  }
  if (!experiment.expectations.empty()) text.table("expect");
  for (const Expectation& expectation : experiment.expectations) text.put(expectation.key, expectation.allowed);
  text.table("report");
  text.put("figures", experiment.figures);
  if (experiment.claim) experiment.claim->resolve(text);
  for (const Check& check : experiment.checks) check.resolve(text);
}

}  // namespace

std::vector<double> Experiment::times() const { return time ? time->times() : std::vector<double>{0.0}; }

std::string Experiment::resolved() const {
  TomlText text;
  text.put("title", title);
  text.put("system", system);
  resolve_generic(*this, text);
  return text.text();
}

Experiment make_experiment(const Document& document, const Systems& systems) {
  const Section root(document);
  Experiment experiment;
  experiment.title = root.text("title", title_of(document.file));
  const System& system = find_system(root, systems);
  experiment.system = system.name();
  if (root.has("sweep")) root.fail("sweep", "makes this a sweep of experiments", "iclflow sweep FILE");
  if (root.has("scaling")) root.fail("scaling", "stands in a file without [sweep]", "[[scaling]] beside [sweep]");
  experiment.study = system.parse(root);
  check_names(root, *experiment.study);
  experiment.time = read_time(root, *experiment.study);
  experiment.events = read_events(root, *experiment.study);
  experiment.expectations = read_expectations(root, *experiment.study);
  experiment.figures = read_figures(root, *experiment.study);
  experiment.claim = read_claim(root);
  experiment.checks = read_checks(root);
  root.finish();
  return experiment;
}

Experiment read_experiment(const std::filesystem::path& file, const Systems& systems) {
  return make_experiment(read_document(file), systems);
}

}  // namespace iclflow
