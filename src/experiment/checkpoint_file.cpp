#include "iclflow/experiment/checkpoint_file.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "iclflow/experiment/run_folder.hpp"

namespace iclflow {

namespace {

constexpr std::string_view magic = "iclflow checkpoint 2\n";

class Writer {
 public:
  void number(std::uint64_t value) { bytes_.append(std::bit_cast<std::array<char, 8>>(value).data(), 8); }
  void number(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void text(std::string_view value) {
    number(std::uint64_t{value.size()});
    bytes_.append(value);
  }
  void numbers(const double* values, std::size_t size) {
    number(std::uint64_t{size});
    for (std::size_t i = 0; i < size; ++i) number(values[i]);
  }
  void numbers(const std::vector<double>& values) { numbers(values.data(), values.size()); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::array<char, 8> raw{};
    std::memcpy(raw.data(), take(8).data(), 8);
    return std::bit_cast<std::uint64_t>(raw);
  }
  double real() { return std::bit_cast<double>(number()); }
  std::string text() { return std::string(take(number())); }
  /// Number of things to follow, each at least `bytes` long: a damaged count cannot make anybody allocate.
  std::size_t count(std::size_t bytes) {
    const std::uint64_t n = number();
    if (n > bytes_.size() / bytes) throw std::runtime_error("is damaged");
    return n;
  }
  std::vector<double> reals() {
    std::vector<double> values(count(8));
    for (double& value : values) value = real();
    return values;
  }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) throw std::runtime_error("is damaged");
    const std::string_view front = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return front;
  }

  std::string_view bytes_;
};

void write(const Trajectory& trajectory, Writer& out) {
  out.numbers(trajectory.times);
  out.number(std::uint64_t{trajectory.observables.size()});
  for (const Observable& observable : trajectory.observables) {
    out.text(observable.name);
    out.text(observable.description);
    out.number(std::uint64_t{observable.dimensions.size()});
    for (std::size_t j = 0; j < observable.dimensions.size(); ++j) {
      out.text(observable.dimensions[j]);
      out.number(std::uint64_t{observable.shape[j]});
    }
    out.numbers(observable.values);
  }
  out.number(std::uint64_t{trajectory.events.size()});
  for (const EventRecord& event : trajectory.events) {
    out.text(event.quantity);
    out.number(event.level);
    out.text(event.direction);
    out.number(event.time);
  }
}

Trajectory read_trajectory(Reader& in) {
  Trajectory trajectory;
  trajectory.times = in.reals();
  for (std::size_t k = in.count(8); k > 0; --k) {
    Observable observable;
    observable.name = in.text();
    observable.description = in.text();
    for (std::size_t j = in.count(8); j > 0; --j) {
      observable.dimensions.push_back(in.text());
      observable.shape.push_back(in.number());
    }
    observable.values = in.reals();
    trajectory.observables.push_back(std::move(observable));
  }
  for (std::size_t k = in.count(8); k > 0; --k) {
    EventRecord event;
    event.quantity = in.text();
    event.level = in.real();
    event.direction = in.text();
    event.time = in.real();
    trajectory.events.push_back(std::move(event));
  }
  return trajectory;
}

SavedMember read_member(Reader& in) {
  SavedMember member;
  member.done = in.number() != 0;
  member.wall_seconds = in.real();
  member.checkpoint.time = in.real();
  member.checkpoint.step = in.real();
  member.checkpoint.step_count = in.number();
  member.checkpoint.evaluations = in.number();
  member.checkpoint.rejections = in.number();
  for (std::size_t k = in.count(8); k > 0; --k) {
    member.checkpoint.event_sides.push_back(static_cast<int>(in.real()));
  }
  member.checkpoint.memory = in.reals();
  const std::vector<double> state = in.reals();
  member.checkpoint.state = Eigen::Map<const Eigen::VectorXd>(state.data(), static_cast<Eigen::Index>(state.size()));
  member.checkpoint.trajectory = read_trajectory(in);
  return member;
}

}  // namespace

std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

void save_member(const std::filesystem::path& file, std::uint64_t print, const SavedMember& member) {
  Writer body;
  body.number(std::uint64_t{member.done ? 1U : 0U});
  body.number(member.wall_seconds);
  body.number(member.checkpoint.time);
  body.number(member.checkpoint.step);
  body.number(member.checkpoint.step_count);
  body.number(member.checkpoint.evaluations);
  body.number(member.checkpoint.rejections);
  body.number(std::uint64_t{member.checkpoint.event_sides.size()});
  for (const int side : member.checkpoint.event_sides) body.number(static_cast<double>(side));
  body.numbers(member.checkpoint.memory);
  body.numbers(member.checkpoint.state.data(), static_cast<std::size_t>(member.checkpoint.state.size()));
  write(member.checkpoint.trajectory, body);
  Writer head;
  head.number(print);
  head.number(fingerprint(body.bytes()));
  write_whole(file, std::string(magic) + head.bytes() + body.bytes());
}

std::optional<SavedMember> load_member(const std::filesystem::path& file, std::uint64_t print) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string text = bytes.str();
  try {
    if (text.substr(0, magic.size()) != magic) throw std::runtime_error("is not a checkpoint of this version");
    Reader in(std::string_view(text).substr(magic.size()));
    if (in.number() != print) throw std::runtime_error("belongs to another experiment");
    if (in.number() != fingerprint(std::string_view(text).substr(magic.size() + 16))) {
      throw std::runtime_error("is damaged");
    }
    return read_member(in);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file.string() + ": checkpoint " + error.what());
  }
}

}  // namespace iclflow
