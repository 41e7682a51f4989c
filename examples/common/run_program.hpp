#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace example {

/// What the person at the keyboard can put right: a wrong option, a bad data file, a machine without a GPU.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ends the program with this exit code and without a sentence, where another process of the job has said why.
struct QuietExit {
  int code;
};

/// Runs a program's body and turns what it throws into one sentence on stderr.
///
/// Returns: the exit code: 0, 1 for a failure while running, 2 for a UserError, that of a QuietExit.
template <class Body>
int run_program(const char* name, Body&& body) noexcept {
  try {
    body();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw std::runtime_error("standard output could not be written; check the disk or pipe behind it");
    }
    return 0;
  } catch (const UserError& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  } catch (const QuietExit& exit) {
    return exit.code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
  } catch (...) {
    std::fprintf(stderr, "%s: stopped by an error of unknown type\n", name);
  }
  return 1;
}

}  // namespace example
