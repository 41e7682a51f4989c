// Timers that are still there when the process ends: it must end as it would without them, with exit code 0 and not a
// word.
//
//     cuda_exit_isolated <row>     0: as expected, 1: not, 77: no device
//     cuda_exit_isolated list      the names of the rows
//
// Each row runs in a child that starts afresh, so that its exit code and output can be looked at.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <steptimer/cuda_backend.hpp>

#include "../support/device_work.hpp"
#include "../support/isolated_rows.hpp"

using namespace std::chrono_literals;
using steptimer::CudaTimer;

namespace {

using isolated_rows::failed;
using isolated_rows::passed;
using isolated_rows::skipped;

// Older than the first CUDA call of the process.
CudaTimer older_than_cuda;
std::unique_ptr<CudaTimer> owned_by_older;

/// A few steps that are measured, some that are pending, and one that is open.
bool use(CudaTimer& timer, cudaStream_t stream) {
  for (int i = 0; i < 4; ++i) {
    timer.on_batch_start();
    device_work::work(stream, 1ms);
    timer.on_batch_end();
    device_work::wait_for(stream);
  }
  for (int i = 0; i < 3; ++i) {
    timer.on_batch_start();
    device_work::work(stream, 20ms);
    timer.on_batch_end();
  }
  timer.on_batch_start();
  return timer.counts().measured >= 3 && timer.counts().pending >= 3 &&
         timer.status().state == steptimer::TimerState::ok;
}

/// The first CUDA call of the process.
void begin() {
  const std::string reason = device_work::skip_reason();
  if (reason.empty() && device_work::begin()) return;
  std::printf("%s\n", reason.c_str());
  std::fflush(nullptr);
  std::_Exit(skipped);
}

int verdict(bool good) { return good ? passed : failed; }

cudaStream_t lasting_stream() {
  cudaStream_t stream = nullptr;
  return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? stream : nullptr;
}

CudaTimer& function_static(cudaStream_t stream) {
  static CudaTimer timer{stream};
  return timer;
}

// --- what the child does

int never_used() {
  begin();
  return passed;
}

int namespace_scope() {
  begin();
  return verdict(use(older_than_cuda, nullptr));
}

int namespace_scope_on_a_stream() {
  begin();
  const cudaStream_t stream = lasting_stream();
  older_than_cuda = CudaTimer{stream};
  return verdict(use(older_than_cuda, stream));
}

int namespace_scope_after_its_stream() {
  begin();
  const device_work::Stream stream;
  owned_by_older = std::make_unique<CudaTimer>(stream.get());
  return verdict(use(*owned_by_older, stream));
}

int namespace_scope_before_any_step_is_done() {
  begin();
  older_than_cuda.on_batch_start();
  device_work::work(nullptr, 20ms);
  older_than_cuda.on_batch_end();
  older_than_cuda.on_batch_start();
  return passed;
}

int namespace_scope_exit() {
  begin();
  const bool good = use(older_than_cuda, nullptr);
  std::exit(verdict(good));
}

int function_static_younger_than_cuda() {
  begin();
  const cudaStream_t stream = lasting_stream();
  return verdict(use(function_static(stream), stream));
}

int function_static_older_than_cuda() {
  CudaTimer& timer = function_static(nullptr);
  begin();
  return verdict(use(timer, nullptr));
}

int thread_local_of_the_main_thread() {
  begin();
  const cudaStream_t stream = lasting_stream();
  thread_local CudaTimer timer{stream};
  return verdict(use(timer, stream));
}

int thread_local_of_another_thread() {
  begin();
  const cudaStream_t stream = lasting_stream();
  bool good = false;
  std::thread([&] {
    thread_local CudaTimer timer{stream};
    good = use(timer, stream);
  }).join();
  return verdict(good);
}

int local_in_main() {
  begin();
  const device_work::Stream stream;
  CudaTimer timer{stream.get()};
  return verdict(use(timer, stream));
}

int hooks_at_exit() {
  begin();
  const bool good = use(older_than_cuda, nullptr);
  struct Late {
    ~Late() {
      older_than_cuda.on_batch_end();
      older_than_cuda.poll();
      older_than_cuda.finish(0ns);
    }
  };
  static const Late late;  // younger than CUDA's first use: the runtime is still there
  return verdict(good);
}

struct Row {
  const char* name;
  int (*run)();
};

constexpr Row rows[] = {
    {"never-used", never_used},
    {"namespace-scope", namespace_scope},
    {"namespace-scope-on-a-stream", namespace_scope_on_a_stream},
    {"namespace-scope-after-its-stream", namespace_scope_after_its_stream},
    {"namespace-scope-before-any-step-is-done", namespace_scope_before_any_step_is_done},
    {"namespace-scope-and-exit", namespace_scope_exit},
    {"function-static-younger-than-cuda", function_static_younger_than_cuda},
    {"function-static-older-than-cuda", function_static_older_than_cuda},
    {"thread-local-of-the-main-thread", thread_local_of_the_main_thread},
    {"thread-local-of-another-thread", thread_local_of_another_thread},
    {"local-in-main", local_in_main},
    {"hooks-at-exit", hooks_at_exit},
};

/// Runs this program again as the child of a row, and looks at what it says and how it ends.
int run_in_child(const char* row) {
  int ends[2];
  if (pipe(ends) != 0) return failed;
  const pid_t child = fork();
  if (child < 0) return failed;
  if (child == 0) {
    alarm(60);  // a child that hangs is ended
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "cuda_exit_isolated", "child", row, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int how = 0;
  if (waitpid(child, &how, 0) != child) return failed;
  const int code = WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
  if (code == skipped) {
    std::printf("SKIPPED: %s", said.c_str());
    return skipped;
  }
  if (code != passed) std::printf("it ended with %d\n", code);
  if (!said.empty()) std::printf("it said:\n%s\n", said.c_str());
  return verdict(code == passed && said.empty());
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_child = argc == 3 && std::string(argv[1]) == "child";
  if (is_child)
    return isolated_rows::main_of("cuda_exit_isolated child", rows, 2, argv + 1,
                                  [](const Row& row) { return row.run(); });
  return isolated_rows::main_of("cuda_exit_isolated", rows, argc, argv,
                                [](const Row& row) { return run_in_child(row.name); });
}
