#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "run_program.hpp"

namespace example {

/// Finds the digits that come with the examples, whatever the working directory is.
///
/// It looks beside the executable and in the folders above it, so that a moved build still works, then where
/// the sources were when it was built (STEPTIMER_EXAMPLES_DATA, if the build defines it).
inline std::string find_digits_file(const char* argv0) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path executable = fs::read_symlink("/proc/self/exe", ignored);  // Linux; elsewhere argv[0] has to do
  if (executable.empty() && argv0 != nullptr) executable = fs::absolute(argv0, ignored);

  const fs::path inside = fs::path("data") / "digits.csv";
  fs::path folder = executable.parent_path();
  for (int level = 0; level < 5 && !folder.empty(); ++level, folder = folder.parent_path()) {
    for (const fs::path& candidate : {folder / inside, folder / "examples" / inside}) {
      if (fs::is_regular_file(candidate, ignored)) return candidate.string();
    }
  }
#ifdef STEPTIMER_EXAMPLES_DATA
  if (fs::is_regular_file(STEPTIMER_EXAMPLES_DATA, ignored)) return STEPTIMER_EXAMPLES_DATA;
#endif
  throw UserError("digits.csv was not found near the program; say where it is with --data FILE");
}

}  // namespace example
