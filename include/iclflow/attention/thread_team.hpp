#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace iclflow {

class IdleThreads;

/// A few threads that share numbered parts of one job after another, and with them whoever is idle in the process.
/// Which thread does which part is left open: results must not depend on it, so a part writes only to its own place and
/// sums are taken in the order of parts.
class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Threads that may ever work here, idle ones of the process included.
  [[nodiscard]] std::size_t size() const { return own() + guests_.size(); }

  /// Calls job(part, worker) for parts 0..parts-1 and returns when all are done; worker < size().
  /// The first exception thrown by a part is thrown again here.
  void run(std::size_t parts, const std::function<void(std::size_t part, std::size_t worker)>& job);

 private:
  friend class IdleThreads;
  [[nodiscard]] std::size_t own() const { return workers_.size() + 1; }
  void serve(const std::stop_token& stop, std::size_t worker);
  void work(std::size_t worker);
  [[nodiscard]] bool has_parts();

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  const std::function<void(std::size_t, std::size_t)>* job_ = nullptr;
  std::size_t parts_ = 0;
  std::size_t next_ = 0;
  std::atomic<std::size_t> busy_{0};   ///< written under the mutex, read besides by those who yield for a while
  std::atomic<std::size_t> round_{0};  ///< likewise
  std::exception_ptr failure_;
  std::vector<bool> guests_;           ///< places for idle threads, true: taken; guarded by IdleThreads
  std::vector<std::jthread> workers_;  // last: joined before the rest goes
};

/// Threads of the process that have run out of work of their own and take parts of the jobs of any team.
class IdleThreads {
 public:
  static IdleThreads& of_this_process();

  /// Teams made while such an object lives have places for `most` idle threads.
  class Room {
   public:
    explicit Room(std::size_t most);
    ~Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

   private:
    std::size_t before_;
  };

  /// Lends the calling thread until `wanted_back` is true; wake() makes it look.
  void lend(const std::function<bool()>& wanted_back);
  void wake();
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

 private:
  friend class ThreadTeam;
  void offer(ThreadTeam& team);
  void withdraw(ThreadTeam& team);
  [[nodiscard]] ThreadTeam* needy(std::size_t& place);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable left_;
  std::atomic<std::size_t> waiting_{0};  ///< idle threads
  std::atomic<std::size_t> room_{0};
  std::vector<ThreadTeam*> teams_;  ///< those with a job under way
};

}  // namespace iclflow
