#include "interruption.hpp"

#include <csignal>

namespace iclflow::cli {

namespace {

volatile std::sig_atomic_t interruptions = 0;

void remember(int /*signal*/) { interruptions = 1; }

}  // namespace

void catch_interruptions() {
  struct sigaction action = {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool was_interrupted() { return interruptions != 0; }

}  // namespace iclflow::cli
