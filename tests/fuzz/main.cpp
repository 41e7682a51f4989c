// Runs sequences without libFuzzer: those in the given files and folders, or without arguments random ones.
//
//   sequences_cuda tests/fuzz/corpus/cuda
//   STEPTIMER_SEQUENCES=1000000 STEPTIMER_SEED=7 sequences_cuda
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

void run_random_sequence(std::uint64_t seed) {
  constexpr std::size_t longest = 96;
  std::array<std::uint8_t, longest> bytes{};
  std::mt19937_64 random(seed);
  const std::size_t size = random() % (longest + 1);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(random() >> 56);
  std::snprintf(fuzz::report().origin, sizeof fuzz::report().origin,
                "run it again with STEPTIMER_SEQUENCES=1 STEPTIMER_SEED=%" PRIu64, seed);
  LLVMFuzzerTestOneInput(bytes.data(), size);
}

void run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s; name a file or a folder of sequences\n", path.c_str());
    std::exit(2);
  }
  const std::vector<char> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  std::snprintf(fuzz::report().origin, sizeof fuzz::report().origin, "of the file %s", path.c_str());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::uint64_t run_path(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) {
    run_file(path);
    return 1;
  }
  std::uint64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    run_file(entry.path());
    ++files;
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sequences = 0;
  for (int i = 1; i < argc; ++i) sequences += run_path(argv[i]);
  if (argc == 1) {
    const std::uint64_t seed = number_from_environment("STEPTIMER_SEED", 1);
    sequences = number_from_environment("STEPTIMER_SEQUENCES", 20000);
    for (std::uint64_t i = 0; i < sequences; ++i) run_random_sequence(seed + i);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%" PRIu64 " sequences in %.1f s\n", sequences, seconds.count());
  return sequences > 0 ? 0 : 1;
}
