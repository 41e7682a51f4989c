#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "threads.hpp"

namespace example {

/// The other ranks of a job on this machine: the same program again, one process a rank. Linux only.
///
/// A rank that fails takes the job with it, since the others would wait for it for ever in their next all-reduce; and no
/// rank outlives this process.
class ChildRanks {
 public:
  /// Starts the program with these arguments, once for each rank from 1 on, with `--rank R` at the end.
  ChildRanks(const char* program, const std::vector<std::string>& arguments, std::uint32_t ranks) : program_(program) {
    for (std::uint32_t rank = 1; rank < ranks; ++rank) start(arguments, rank);
    watching_ = start_thread([this] { watch(); });
  }
  ChildRanks(const ChildRanks&) = delete;
  ChildRanks& operator=(const ChildRanks&) = delete;
  /// Waits for them where this rank is done, too; where it fails, they are ended.
  ~ChildRanks() {
    if (std::uncaught_exceptions() > 0) {
      ending_ = true;
      end_all();
    }
    watching_.join();
  }

 private:
  void start(std::vector<std::string> arguments, std::uint32_t rank) {
    arguments.insert(arguments.begin(), program_);
    arguments.insert(arguments.end(), {"--rank", std::to_string(rank)});
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("another process could not be started; see whether there are too many");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);  // it was gone before that
      execv("/proc/self/exe", words.data());
      _exit(127);
    }
    children_.push_back(child);
  }

  void end_all() noexcept {
    for (const pid_t child : children_) kill(child, SIGKILL);
  }

  void watch() {
    for (std::size_t left = children_.size(); left > 0; --left) {
      int how = 0;
      pid_t child = 0;
      do child = waitpid(-1, &how, 0);
      while (child < 0 && errno == EINTR);
      if (ending_ || (child > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0)) continue;
      std::fprintf(stderr, "%s: one of the ranks failed, so the job is ended\n", program_.c_str());
      end_all();
      std::_Exit(1);
    }
  }

  std::string program_;
  std::vector<pid_t> children_;
  std::atomic<bool> ending_{false};
  std::thread watching_;
};

}  // namespace example
