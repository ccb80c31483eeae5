#include "iclflow/attention/thread_team.hpp"

#include <algorithm>
#include <utility>

namespace iclflow {

namespace {

/// Jobs follow each other within microseconds and a wake-up costs tens of them: yields a while before it sleeps.
template <typename Condition>
void yield_until(const Condition& condition) {
  constexpr int patience = 200;  // some 50 us where no one else wants the core
  for (int k = 0; k < patience && !condition(); ++k) std::this_thread::yield();
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : guests_(IdleThreads::of_this_process().room_) {
  for (int k = 1; k < threads; ++k) {
    workers_.emplace_back([this, k](const std::stop_token& stop) { serve(stop, static_cast<std::size_t>(k)); });
  }
}

ThreadTeam::~ThreadTeam() {
  for (std::jthread& worker : workers_) worker.request_stop();
}

void ThreadTeam::run(std::size_t parts, const std::function<void(std::size_t, std::size_t)>& job) {
  IdleThreads& idle = IdleThreads::of_this_process();
  const bool offered = parts > 1 && !guests_.empty() && idle.waiting_ > 0;
  if ((workers_.empty() && !offered) || parts == 1) {
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
  if (offered) idle.offer(*this);
  work(0);
  if (offered) idle.withdraw(*this);
  yield_until([this] { return busy_ == 0; });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadTeam::serve(const std::stop_token& stop, std::size_t worker) {
  std::size_t seen = 0;
  while (true) {
    yield_until([&] { return round_ != seen || stop.stop_requested(); });
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

bool ThreadTeam::has_parts() {
  const std::lock_guard lock(mutex_);
  return next_ < parts_ && !failure_;
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

IdleThreads& IdleThreads::of_this_process() {
  static IdleThreads all;
  return all;
}

IdleThreads::Room::Room(std::size_t most) : before_(of_this_process().room_.exchange(most)) {}
IdleThreads::Room::~Room() { of_this_process().room_ = before_; }

void IdleThreads::offer(ThreadTeam& team) {
  {
    const std::lock_guard lock(mutex_);
    teams_.push_back(&team);
  }
  wake_.notify_all();
}

/// No idle thread comes to the team any more; returns when those that came have left.
void IdleThreads::withdraw(ThreadTeam& team) {
  std::unique_lock lock(mutex_);
  teams_.erase(std::find(teams_.begin(), teams_.end(), &team));
  left_.wait(lock, [&team] { return std::find(team.guests_.begin(), team.guests_.end(), true) == team.guests_.end(); });
}

/// The team with the fewest guests that has parts left and a free place, which is taken.
ThreadTeam* IdleThreads::needy(std::size_t& place) {
  ThreadTeam* best = nullptr;
  auto fewest = static_cast<std::ptrdiff_t>(room_ + 1);
  for (ThreadTeam* team : teams_) {
    const auto guests = std::count(team->guests_.begin(), team->guests_.end(), true);
    if (guests < fewest && guests < static_cast<std::ptrdiff_t>(team->guests_.size()) && team->has_parts()) {
      best = team;
      fewest = guests;
    }
  }
  if (best == nullptr) return nullptr;
  const auto free = std::find(best->guests_.begin(), best->guests_.end(), false);
  *free = true;
  place = static_cast<std::size_t>(free - best->guests_.begin());
  return best;
}

void IdleThreads::lend(const std::function<bool()>& wanted_back) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  while (!wanted_back()) {
    std::size_t place = 0;
    ThreadTeam* team = needy(place);
    if (team == nullptr) {
      wake_.wait(lock);
      continue;
    }
    lock.unlock();
    team->work(team->own() + place);
    lock.lock();
    team->guests_[place] = false;
    left_.notify_all();
  }
  --waiting_;
}

void IdleThreads::wake() {
  const std::lock_guard lock(mutex_);
  wake_.notify_all();
}

}  // namespace iclflow
