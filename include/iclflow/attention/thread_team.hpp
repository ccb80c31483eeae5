#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace iclflow {

/// A few threads that share numbered parts of one job after another. Which thread does which part is left open:
/// results must not depend on it, so a part writes only to its own place and sums are taken in the order of parts.
class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  [[nodiscard]] std::size_t size() const { return workers_.size() + 1; }

  /// Calls job(part, worker) for parts 0..parts-1 and returns when all are done; worker < size().
  /// The first exception thrown by a part is thrown again here.
  void run(std::size_t parts, const std::function<void(std::size_t part, std::size_t worker)>& job);

 private:
  void serve(const std::stop_token& stop, std::size_t worker);
  void work(std::size_t worker);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  const std::function<void(std::size_t, std::size_t)>* job_ = nullptr;
  std::size_t parts_ = 0;
  std::size_t next_ = 0;
  std::size_t busy_ = 0;
  std::size_t round_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> workers_;  // last: joined before the rest goes
};

}  // namespace iclflow
