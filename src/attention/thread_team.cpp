#include "iclflow/attention/thread_team.hpp"

#include <exception>
#include <utility>

namespace iclflow {

ThreadTeam::ThreadTeam(int threads) {
  for (int k = 1; k < threads; ++k) {
    workers_.emplace_back([this, k](const std::stop_token& stop) { serve(stop, static_cast<std::size_t>(k)); });
  }
}

ThreadTeam::~ThreadTeam() {
  for (std::jthread& worker : workers_) worker.request_stop();
}

void ThreadTeam::run(std::size_t parts, const std::function<void(std::size_t, std::size_t)>& job) {
  if (workers_.empty() || parts == 1) {
    for (std::size_t part = 0; part < parts; ++part) job(part, 0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    parts_ = parts;
    next_ = 0;
    busy_ = workers_.size();
    ++round_;
  }
  wake_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadTeam::serve(const std::stop_token& stop, std::size_t worker) {
  std::size_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [&] { return round_ != seen; })) return;
      seen = round_;
    }
    work(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void ThreadTeam::work(std::size_t worker) {
  while (true) {
    std::size_t part = 0;
    {
      const std::lock_guard lock(mutex_);
      if (next_ >= parts_ || failure_) return;
      part = next_++;
    }
    try {
      (*job_)(part, worker);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
}

}  // namespace iclflow
