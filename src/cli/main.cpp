#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>

#include "commands.hpp"

namespace {

using namespace iclflow;

int complain(const std::string& text, int code) {
  std::cerr << "iclflow: " << cli::one_line(text) << '\n';
  return code;
}

std::string subcommands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) names += command->get_name() + ", ";
  return names;
}

int parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return cli::done;
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    std::cout.flush();
    return std::cout.good() ? -1 : complain("standard output cannot be written", cli::failed);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && app.get_subcommands().empty()) {
      return complain(
          "'" + std::string(argv[1]) + "' is not known here; allowed: " + subcommands(app) + "--help, --version",
          cli::bad_input);
    }
    return complain(std::string(error.what()) + "; see iclflow --help", cli::bad_input);
  }
}

int act(const cli::Action& action) {
  try {
    const int code = action();
    std::cout.flush();
    return std::cout.good() ? code : complain("standard output cannot be written", cli::failed);
  } catch (const InputError& error) {
    return complain(error.what(), cli::bad_input);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory", cli::failed);
  } catch (const std::exception& error) {
    return complain(error.what(), cli::failed);
  }
}

/// A closed stream's number would go to the next file that is opened, and what is meant for the stream into that file.
/// Writing to what this puts in its place fails, as writing to a closed stream should.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error to report, not a death
  CLI::App app{"How attention learns in context: theory and simulation on one clock", "iclflow"};
  app.set_version_flag("--version", "iclflow " + std::string(version()));
  app.require_subcommand(1);
  cli::Action action;
  for (const auto add : {cli::add_run, cli::add_predict, cli::add_compare, cli::add_report, cli::add_list,
                         cli::add_evaluate, cli::add_sweep, cli::add_optimum, cli::add_claims}) {
    add(app, action);
  }
  if (const int code = parse(app, argc, argv); code != cli::done) return code < 0 ? 0 : code;
  return act(action);
}
