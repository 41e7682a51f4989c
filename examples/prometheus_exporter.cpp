// A training that Prometheus can scrape while it runs: on_record hands each step to the scraping side without a lock, so
// no hook waits for a scrape.
//
// Try:  prometheus_exporter --seconds 60 &       it prints its address
//       curl http://127.0.0.1:PORT/metrics
//
// The share of the last minute in which the training waited for data, as Prometheus computes it:
//       rate(steptimer_data_seconds_total[1m]) / rate(steptimer_wall_seconds_total[1m])

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <steptimer/metrics.hpp>
#include <steptimer/steptimer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/batch_loader.hpp"
#include "common/data_file.hpp"
#include "common/digits.hpp"
#include "common/latest_value.hpp"
#include "common/network.hpp"
#include "common/option_table.hpp"
#include "common/run_program.hpp"
#include "common/score.hpp"

namespace {

using namespace example;

/// "profiling/phase/forward" as "steptimer_last_phase_forward": such a name is of letters, digits and underscores.
std::string prometheus_name(std::string_view metric) {
  std::string name = "steptimer_last_";
  for (const char c : metric.substr(metric.find('/') + 1)) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += allowed ? c : '_';
  }
  return name;
}

/// What the training thread publishes after each step.
struct Timing {
  steptimer::StepSummary total;
  steptimer::StepRecord last;
};

class TimingMetrics : public prometheus::Collectable {
 public:
  /// on_record: by the training thread.
  void operator()(const steptimer::StepRecord& record) noexcept {
    timing_.total = merge(timing_.total, summary_of(record));
    timing_.last = record;
    latest_.publish(timing_);
  }

  /// By the threads of the server, for each scrape.
  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard<std::mutex> one_scrape_at_a_time(scraping_);
    const Timing& timing = latest_.read();
    std::vector<prometheus::MetricFamily> families;
    add_counter(families, "steptimer_steps_total", "Steps measured.", static_cast<double>(timing.total.steps));
    add_counter(families, "steptimer_items_total", "Items in them.", static_cast<double>(timing.total.items));
    add_counter(families, "steptimer_batch_seconds_total", "Time in steps.", in_seconds(timing.total.batch_total));
    add_counter(families, "steptimer_data_seconds_total", "Time waiting for data between steps.",
                in_seconds(timing.total.data_total));
    add_counter(families, "steptimer_wall_seconds_total", "Time from start to start of steps, pauses left out.",
                in_seconds(timing.total.wall_total));
    if (timing.total.steps == 0) return families;
    steptimer::for_each_metric(timing.last, [&families](std::string_view name, double value) {
      add_gauge(families, prometheus_name(name), "Of the last step; times in seconds.", value);
    });
    return families;
  }

 private:
  static double in_seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

  static void add_counter(std::vector<prometheus::MetricFamily>& families, std::string name, std::string help,
                          double value) {
    prometheus::ClientMetric metric;
    metric.counter.value = value;
    families.push_back({std::move(name), std::move(help), prometheus::MetricType::Counter, {metric}});
  }
  static void add_gauge(std::vector<prometheus::MetricFamily>& families, std::string name, std::string help,
                        double value) {
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    families.push_back({std::move(name), std::move(help), prometheus::MetricType::Gauge, {metric}});
  }

  Timing timing_;  // the training thread's
  mutable LatestValue<Timing> latest_;
  mutable std::mutex scraping_;  // no training thread ever takes it
};

std::unique_ptr<prometheus::Exposer> serve(unsigned port) {
  try {
    return std::make_unique<prometheus::Exposer>("127.0.0.1:" + std::to_string(port));
  } catch (const std::exception&) {
    throw UserError("port " + std::to_string(port) + " of 127.0.0.1 cannot be listened on; free it or take --port 0");
  }
}

steptimer::StepSummary train(const DigitsSplit& digits, const BatchLoaderOptions& batches,
                             std::chrono::nanoseconds time, TimingMetrics& metrics) {
  const NetworkShape shape(64);
  Network network(shape, batches.seed);
  BatchLoader loader(digits.training, batches);
  steptimer::StepTimerOptions options;
  options.on_record = std::ref(metrics);
  steptimer::CpuTimer timer{{}, options};
  Batch batch;

  const auto end = std::chrono::steady_clock::now() + time;
  for (std::uint64_t step = 0; step < loader.steps() && std::chrono::steady_clock::now() < end; ++step) {
    {
      const auto fetching = timer.fetch();
      loader.next(batch);
    }
    timer.on_batch_start();
    network.train(batch, shape.learning_rate(step, loader.steps()), [&](const char* phase) { timer.mark(phase); });
    timer.on_batch_end(batch.size());
  }
  timer.finish();
  return timer.total();
}

void run(int argc, char** argv) {
  unsigned port = 0;
  double seconds = 30;
  double loader_delay_ms = 2;
  OptionTable table("prometheus_exporter", "trains on digits and serves its step times to Prometheus meanwhile");
  table.add_count("--port", port, 0u, 65535u, "where to listen on 127.0.0.1, 0 for any free port");
  table.add_amount("--seconds", seconds, 1000000, "how long to train");
  table.add_amount("--loader-delay-ms", loader_delay_ms, 60000, "slow storage, sleep a batch");
  if (!table.parse(argc, argv)) return;

  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  BatchLoaderOptions batches;
  batches.epochs = 1'000'000'000;  // the time ends the training
  batches.delay = duration_cast<nanoseconds>(std::chrono::duration<double, std::milli>(loader_delay_ms));
  const auto time = duration_cast<nanoseconds>(std::chrono::duration<double>(seconds));
  const DigitsSplit digits = split_digits(read_digits(find_digits_file(argv[0])));

  const auto metrics = std::make_shared<TimingMetrics>();
  const auto server = serve(port);
  server->RegisterCollectable(metrics);
  std::printf("serving http://127.0.0.1:%d/metrics\n", server->GetListeningPorts().front());
  std::fflush(stdout);

  const steptimer::StepSummary total = train(digits, batches, time, *metrics);
  std::printf("trained %llu steps, data_wait %.1f %%\n", static_cast<unsigned long long>(total.steps),
              total.data_wait_percent().value_or(0));
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("prometheus_exporter", [&] { run(argc, argv); });
}
