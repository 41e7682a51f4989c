// The fake runtime: see fake_cuda.hpp. Everything is under one mutex; state is never destroyed, so that
// destructors of static objects can still call in.
//
// How device time is computed: each command on a stream is a Node that starts when the host queued it, when
// the commands it depends on have ended, and when its gate is open, whichever is last. All three are known as
// soon as the command is queued unless a gate is closed, so the end is computed at once and "has it run?" is
// a comparison with the clock. Nodes behind a closed gate are resolved when the gate opens.

// Both names of each function are defined here, whatever default stream the tests are compiled for.
#undef CUDA_API_PER_THREAD_DEFAULT_STREAM

#include "fake_cuda.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace fake_cuda {
namespace {

// --- the model

struct Node {
  nanoseconds ready{0};  // not before this: host time of queueing, and the ends of dependencies known so far
  nanoseconds duration{0};
  std::vector<std::shared_ptr<Node>> after;  // dependencies whose end is not known yet
  std::uint64_t gate = 0;                    // 0: none
  int fault_device = -1;
  cudaError_t fault_code = cudaSuccess;
  std::uint64_t incarnation = 0;
  std::optional<nanoseconds> end;
};
using NodePtr = std::shared_ptr<Node>;

struct Stream;

struct Capture {
  CaptureState state;
  int thread = 0;
  Stream* origin = nullptr;
  std::vector<Stream*> streams;
};
using CapturePtr = std::shared_ptr<Capture>;

struct Stream {
  int device = 0;
  std::uint64_t incarnation = 0;
  bool legacy = false;
  bool blocking = true;  // ordered against the legacy stream
  bool destroyed = false;
  unsigned flags = 0;
  unsigned long long id = 0;
  NodePtr last;
  std::deque<NodePtr> queue;  // not yet run, oldest first
  CapturePtr capture;
  nanoseconds capture_offset{0};  // time from the begin of the graph to this stream's latest captured command
  std::uint64_t capture_work = 0;
  bool unjoined = false;
};

struct Event {
  int number = 0;
  int device = 0;
  std::uint64_t incarnation = 0;
  unsigned flags = 0;
  bool destroyed = false;
  bool user = false;
  std::uint64_t records = 0;
  cudaStream_t stream_as_passed = nullptr;
  nanoseconds recorded_at{0};
  NodePtr node;        // the latest mark
  CapturePtr capture;  // or the capture the latest record was part of
  Stream* capture_stream = nullptr;
  nanoseconds capture_offset{0};
  std::uint64_t capture_work = 0;
};

struct Graph {
  std::size_t nodes = 0;
  nanoseconds duration{0};
};

struct Device {
  ContextState context;
  std::uint64_t incarnation = 1;
  std::optional<nanoseconds> fault_at;
  cudaError_t fault_code = cudaSuccess;
  std::unique_ptr<Stream> legacy;
  std::map<int, std::unique_ptr<Stream>> per_thread;
};

struct Hook {
  std::optional<nanoseconds> time;  // or
  NodePtr node;                     // when this ends
  std::function<void()> run;
};

struct Settings {
  bool not_ready_sets_last_error = false;
  bool waits_advance = true;
  std::chrono::milliseconds gate_patience{2000};
  nanoseconds call_cost{0};
  nanoseconds event_latency{0};
  nanoseconds event_tick{1};
  std::size_t queue_depth = 1021;
  bool unloading = false;
  bool fork_child = false;
  cudaError_t no_device_error = cudaErrorNoDevice;
  bool keep_log = true;
};

struct World {
  std::uint64_t epoch = 0;
  Settings set;
  nanoseconds now{0};
  std::vector<Device> devices;
  std::unordered_map<cudaEvent_t, Event> events;
  std::vector<cudaEvent_t> event_order;
  std::unordered_map<cudaStream_t, std::unique_ptr<Stream>> streams;
  std::unordered_map<cudaGraph_t, Graph> graphs;
  std::unordered_map<cudaGraphExec_t, Graph> execs;
  std::map<std::uint64_t, std::optional<nanoseconds>> gates;  // time of opening
  std::vector<NodePtr> unresolved;                            // in order of queueing
  std::vector<CapturePtr> captures;
  std::vector<Hook> hooks;
  std::vector<std::unique_ptr<Stream>> lost_streams;  // special streams of devices that were reset
  std::function<void(std::string_view)> before_call;

  std::vector<Call> log;
  std::map<std::string, std::uint64_t, std::less<>> counts;
  std::uint64_t total_calls = 0;
  std::uint64_t errors_set = 0;
  std::vector<ViolationEntry> violations;
  std::vector<Injection> injections;
  std::deque<float> injected_elapsed;
  std::uint64_t created = 0, destroyed = 0, live = 0, most_live = 0;
};

struct Store {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_ptr<World> world;
  std::uint64_t epochs = 0;
  std::uintptr_t handles = 0;  // never reused, not even after reset()
  std::uint64_t gates = 0;
  unsigned long long stream_ids = 0;
  int threads = 0;
};

std::unique_ptr<World> fresh_world(std::uint64_t epoch, int devices) {
  auto w = std::make_unique<World>();
  w->epoch = epoch;
  w->devices.resize(static_cast<std::size_t>(devices));
  return w;
}

Store& store() {
  static Store* const s = [] {
    auto* made = new Store;
    made->world = fresh_world(++made->epochs, 1);
    return made;
  }();
  return *s;
}

struct Thread {
  std::uint64_t epoch = 0;
  cudaError_t last_error = cudaSuccess;
  int device = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  int ordinal = -1;
  int calls = 0;  // depth of runtime calls
  int user = 0;   // depth of UserCode
  bool in_hook = false;
};
thread_local Thread the_thread;

using Lock = std::unique_lock<std::mutex>;

[[noreturn]] void misuse(const char* what) {
  std::fprintf(stderr, "fake_cuda: %s\n", what);
  std::abort();
}

// The calling thread as a part of the present process. Call with the mutex held.
Thread& this_thread(Store& s) {
  Thread& t = the_thread;
  if (t.ordinal < 0) t.ordinal = s.threads++;
  if (t.epoch != s.world->epoch) {
    t.epoch = s.world->epoch;
    t.last_error = cudaSuccess;
    t.device = 0;
    t.mode = cudaStreamCaptureModeGlobal;
  }
  return t;
}

template <class Handle>
Handle new_handle(Store& s) {
  return reinterpret_cast<Handle>(std::uintptr_t{0x7A0000000000} + 16 * ++s.handles);
}

bool finished(const World& w, const Node& n) { return n.end && *n.end <= w.now; }

cudaError_t fault_of(const World& w, int device) {
  const Device& d = w.devices[static_cast<std::size_t>(device)];
  return d.fault_at && *d.fault_at <= w.now ? d.fault_code : cudaSuccess;
}

void set_fault(Device& d, nanoseconds when, cudaError_t code) {
  if (d.fault_at && *d.fault_at <= when) return;
  d.fault_at = when;
  d.fault_code = code;
}

// Computes the node's end if everything it waits for is known.
bool try_resolve(World& w, Node& n) {
  auto still_open = n.after.begin();
  for (auto& dependency : n.after) {
    if (dependency->end)
      n.ready = std::max(n.ready, *dependency->end);
    else
      *still_open++ = dependency;
  }
  n.after.erase(still_open, n.after.end());
  if (!n.after.empty()) return false;
  if (n.gate != 0) {
    const auto gate = w.gates.find(n.gate);
    if (gate != w.gates.end()) {
      if (!gate->second) return false;
      n.ready = std::max(n.ready, *gate->second);
    }
  }
  n.end = n.ready + n.duration;
  if (n.fault_device >= 0) {
    Device& d = w.devices[static_cast<std::size_t>(n.fault_device)];
    if (d.incarnation == n.incarnation) set_fault(d, *n.end, n.fault_code);
  }
  return true;
}

void depend(Node& n, const NodePtr& on) {
  if (!on) return;
  if (on->end)
    n.ready = std::max(n.ready, *on->end);
  else
    n.after.push_back(on);
}

void prune(const World& w, Stream& stream) {
  while (!stream.queue.empty() && finished(w, *stream.queue.front())) stream.queue.pop_front();
}

// Appends a command to a stream and tells whether there was room for it.
bool push(World& w, Stream& stream, const NodePtr& n) {
  depend(*n, stream.last);
  Device& d = w.devices[static_cast<std::size_t>(stream.device)];
  if (stream.legacy) {
    for (auto& entry : w.streams) {
      Stream& other = *entry.second;
      if (other.blocking && other.device == stream.device && other.incarnation == d.incarnation) depend(*n, other.last);
    }
    for (auto& entry : d.per_thread) depend(*n, entry.second->last);
  } else if (stream.blocking && d.legacy) {
    depend(*n, d.legacy->last);
  }
  if (!try_resolve(w, *n)) w.unresolved.push_back(n);
  prune(w, stream);
  const bool room = stream.queue.size() < w.set.queue_depth;
  stream.last = n;
  if (!finished(w, *n)) stream.queue.push_back(n);
  return room;
}

NodePtr new_node(const World& w, nanoseconds duration) {
  auto n = std::make_shared<Node>();
  n->ready = w.now;
  n->duration = duration;
  return n;
}

void resolve_all(World& w) {
  // A dependency is always queued before what depends on it, so one pass in order of queueing is enough.
  auto keep = w.unresolved.begin();
  for (auto& n : w.unresolved)
    if (!try_resolve(w, *n)) *keep++ = n;
  w.unresolved.erase(keep, w.unresolved.end());
}

// Earliest hook that is due by t.
std::optional<std::size_t> next_hook(const World& w, nanoseconds t, nanoseconds* when) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < w.hooks.size(); ++i) {
    const std::optional<nanoseconds> due = w.hooks[i].node ? w.hooks[i].node->end : w.hooks[i].time;
    if (!due || *due > t || (best && *due >= *when)) continue;
    best = i;
    *when = *due;
  }
  return best;
}

void move_clock(Store& s, Lock& lock, nanoseconds target) {
  const std::uint64_t epoch = s.world->epoch;
  nanoseconds when{0};
  while (const auto i = next_hook(*s.world, target, &when)) {
    World& w = *s.world;
    w.now = std::max(w.now, when);
    const auto run = std::move(w.hooks[*i].run);
    w.hooks.erase(w.hooks.begin() + static_cast<std::ptrdiff_t>(*i));
    lock.unlock();
    s.changed.notify_all();
    run();
    lock.lock();
    if (s.world->epoch != epoch) return;  // the hook started a new process
  }
  s.world->now = std::max(s.world->now, target);
  s.changed.notify_all();
}

// --- one runtime call

struct Context {  // of a call, not of a device
  Store& s;
  World& w;
  Thread& me;
  Call& call;
  Lock& lock;
  std::vector<std::pair<Violation, std::string>> found;

  void violate(Violation kind, std::string text) { found.emplace_back(kind, std::move(text)); }

  void touch(int device) {  // the runtime makes a device's context at its first use
    ContextState& context = w.devices[static_cast<std::size_t>(device)].context;
    if (context.exists) return;
    context.exists = true;
    ++context.times_made;
    context.made_by = call.function;
  }

  void invalidate(Capture& capture) {
    if (capture.state.ended || capture.state.invalidated) return;
    capture.state.invalidated = true;
    capture.state.invalidated_by = call.function;
    violate(Violation::capture_destroyed, "it destroyed capture " + std::to_string(capture.state.id));
  }

  // A call that is unsafe while capturing: cudaSuccess if it is allowed now, else the captures in its way are
  // destroyed.
  cudaError_t unsafe_call() {
    if (me.mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    bool prohibited = false;
    for (auto& c : w.captures) {
      if (c->state.ended) continue;
      const bool mine = c->thread == me.ordinal && c->state.mode != cudaStreamCaptureModeRelaxed;
      const bool others = c->thread != me.ordinal && c->state.mode == cudaStreamCaptureModeGlobal &&
                          me.mode == cudaStreamCaptureModeGlobal;
      if (!mine && !others) continue;
      prohibited = true;
      invalidate(*c);
    }
    return prohibited ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  }

  // The legacy stream cannot be used while a blocking stream of its device captures.
  cudaError_t implicit(const Stream& stream, bool destroys) {
    if (!stream.legacy) return cudaSuccess;
    bool blocked = false;
    for (auto& c : w.captures) {
      if (c->state.ended) continue;
      for (const Stream* member : c->streams) {
        if (!member->blocking || member->device != stream.device) continue;
        blocked = true;
        if (destroys) invalidate(*c);
        break;
      }
    }
    return blocked ? cudaErrorStreamCaptureImplicit : cudaSuccess;
  }

  bool lost(int device, std::uint64_t incarnation) const {
    return w.devices[static_cast<std::size_t>(device)].incarnation != incarnation;
  }

  // Finds a stream that can be used now.
  cudaError_t find(cudaStream_t handle, Stream** stream) {
    const auto special = reinterpret_cast<std::uintptr_t>(handle);
    if (special <= 2) {
      Device& d = w.devices[static_cast<std::size_t>(me.device)];
      touch(me.device);
      if (special == 2 || (special == 0 && call.per_thread_variant)) {
        auto& own = d.per_thread[me.ordinal];
        if (!own) {
          own = std::make_unique<Stream>();
          own->id = ++s.stream_ids;
        }
        *stream = own.get();
      } else {
        if (!d.legacy) {
          d.legacy = std::make_unique<Stream>();
          d.legacy->legacy = true;
          d.legacy->id = ++s.stream_ids;
        }
        violate(Violation::default_stream, "it used the legacy stream");
        *stream = d.legacy.get();
      }
      (*stream)->device = me.device;
      (*stream)->incarnation = d.incarnation;
      return fault_of(w, me.device);
    }
    const auto found_stream = w.streams.find(handle);
    if (found_stream == w.streams.end()) {
      violate(Violation::unknown_handle, "its stream was never handed out");
      return cudaErrorInvalidResourceHandle;
    }
    *stream = found_stream->second.get();
    if ((*stream)->destroyed) {
      violate(Violation::use_after_destroy, "its stream has been destroyed");
      return cudaErrorInvalidResourceHandle;
    }
    if (lost((*stream)->device, (*stream)->incarnation)) {
      violate(Violation::crash, "its stream was lost in a device reset");
      return cudaErrorContextIsDestroyed;
    }
    return fault_of(w, (*stream)->device);
  }

  cudaError_t find(cudaEvent_t handle, Event** event, Violation if_destroyed = Violation::use_after_destroy) {
    if (handle == nullptr) {
      violate(Violation::null_handle, "its event is null");
      return cudaErrorInvalidResourceHandle;
    }
    const auto found_event = w.events.find(handle);
    if (found_event == w.events.end()) {
      violate(Violation::unknown_handle, "its event was never handed out");
      return cudaErrorInvalidResourceHandle;
    }
    *event = &found_event->second;
    if ((*event)->destroyed) {
      violate(if_destroyed, "event " + std::to_string((*event)->number) + " has been destroyed");
      return cudaErrorInvalidResourceHandle;
    }
    return cudaSuccess;
  }

  // For query, elapsed and event synchronize, which only read an event. Of these, elapsed spares a capture
  // that the event belongs to.
  cudaError_t readable(const Event& event, bool destroys_its_capture = true) {
    if (lost(event.device, event.incarnation)) {
      // A bare query is safe until something makes the context again; from then on it can touch freed memory.
      if (w.devices[static_cast<std::size_t>(event.device)].context.exists)
        violate(Violation::crash, "its event was lost in a device reset and the context has been made again");
      return cudaErrorContextIsDestroyed;
    }
    if (const cudaError_t fault = fault_of(w, event.device)) return fault;
    if (event.capture) {
      if (event.capture->state.ended) return cudaErrorInvalidValue;
      if (destroys_its_capture) invalidate(*event.capture);
      return cudaErrorCapturedEvent;
    }
    return cudaSuccess;
  }

  void enqueue(Stream& stream, const NodePtr& n) {
    if (!push(w, stream, n)) violate(Violation::would_block, "the stream's queue is full");
  }

  // Adds a command to a stream, or a node to the graph the stream is capturing.
  cudaError_t launch(Stream& stream, const NodePtr& n) {
    if (const cudaError_t refused = implicit(stream, true)) return refused;
    if (stream.capture) {
      if (stream.capture->state.invalidated) return cudaErrorStreamCaptureInvalidated;
      ++stream.capture->state.nodes;
      stream.capture_offset += n->duration;
      ++stream.capture_work;
      if (&stream != stream.capture->origin) stream.unjoined = true;
      return cudaSuccess;
    }
    enqueue(stream, n);
    return cudaSuccess;
  }

  // Waits for nodes as a Synchronize call does. False: it would have waited for ever.
  bool wait(const std::vector<NodePtr>& nodes) {
    violate(Violation::waiting_call, "it may wait for the device");
    const auto give_up = std::chrono::steady_clock::now() + w.set.gate_patience;
    for (;;) {
      nanoseconds end = w.now;
      bool known = true;
      for (const auto& n : nodes) {
        if (!n) continue;
        known = known && n->end;
        if (n->end) end = std::max(end, *n->end);
      }
      if (known && end <= w.now) return true;
      if (!w.set.waits_advance) break;
      if (known) {
        move_clock(s, lock, end);
        continue;
      }
      nanoseconds due{0};
      if (next_hook(w, nanoseconds::max(), &due)) {  // a hook may open the gate
        move_clock(s, lock, due);
        continue;
      }
      if (s.changed.wait_until(lock, give_up) == std::cv_status::timeout) break;
    }
    violate(Violation::would_block, "it would have blocked the host");
    return false;
  }
};

enum class Kind {
  ordinary,
  answer,       // query and elapsed: they also work in a forked child
  destroy,      // bookkeeping happens whatever is returned
  error_state,  // peek and get: set no error themselves
  version,      // always works
  launch        // the test's own kernel launch, not a runtime function
};

Call make_call(const char* function) {
  Call call;
  call.function = function;
  return call;
}

Call stream_call(const char* function, cudaStream_t stream, bool per_thread) {
  Call call = make_call(function);
  call.stream = stream;
  call.has_stream = true;
  call.per_thread_variant = per_thread;
  return call;
}

Call event_call(const char* function, cudaEvent_t event) {
  Call call = make_call(function);
  call.event = event;
  return call;
}

// What the state of the whole process makes of a call; cudaSuccess: nothing special.
cudaError_t process_error(const World& w, Kind kind) {
  if (kind == Kind::version) return cudaSuccess;
  if (w.set.unloading) return cudaErrorCudartUnloading;
  if (w.set.fork_child) return cudaErrorInitializationError;
  if (w.devices.empty()) return w.set.no_device_error;
  return cudaSuccess;
}

struct DepthGuard {
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  int& depth_;
};

void run_before_call_hook(const char* function) {
  if (the_thread.in_hook) return;
  std::function<void(std::string_view)> hook;
  {
    const Lock lock(store().mutex);
    hook = store().world->before_call;
  }
  if (!hook) return;
  struct Flag {
    Flag() { the_thread.in_hook = true; }
    ~Flag() { the_thread.in_hook = false; }
  } const flag;
  hook(function);
}

Injection* matching_injection(World& w, const Call& call) {
  for (auto& candidate : w.injections) {
    if (candidate.times == 0 || (candidate.function != "*" && candidate.function != call.function)) continue;
    if (candidate.only_if && !candidate.only_if(call)) continue;
    if (candidate.skip > 0) {
      --candidate.skip;
      continue;
    }
    if (candidate.times != unlimited) --candidate.times;
    return &candidate;
  }
  return nullptr;
}

void file(World& w, const Call& call, std::vector<std::pair<Violation, std::string>>& found) {
  if (w.set.keep_log) w.log.push_back(call);
  if (call.user) return;
  ++w.total_calls;
  const auto count = w.counts.find(std::string_view(call.function));
  if (count == w.counts.end())
    w.counts.emplace(call.function, 1);
  else
    ++count->second;
  for (auto& entry : found)
    w.violations.push_back({entry.first, call, std::string(call.function) + ": " + entry.second});
}

template <class Body>
cudaError_t run(Call call, Kind kind, Body body) {
  Store& s = store();
  if (kind != Kind::launch) run_before_call_hook(call.function);
  const DepthGuard inside(the_thread.calls);
  Lock lock(s.mutex);
  Thread& me = this_thread(s);
  if (kind != Kind::launch && s.world->set.call_cost > nanoseconds{0})
    move_clock(s, lock, s.world->now + s.world->set.call_cost);
  World& w = *s.world;
  call.thread = me.ordinal;
  call.user = me.user > 0 || kind == Kind::launch;
  call.time = w.now;
  if (call.device < 0) call.device = me.device;

  Context context{s, w, me, call, lock, {}};
  bool sets_last_error = kind != Kind::error_state;
  const Injection* const injection = kind == Kind::launch ? nullptr : matching_injection(w, call);
  const bool skip_body = injection != nullptr && !injection->perform;
  const cudaError_t injected_code = injection != nullptr ? injection->code : cudaSuccess;
  if (injection != nullptr) {
    call.injected = true;
    sets_last_error = sets_last_error && injection->sets_last_error;
  }

  cudaError_t result = injected_code;
  if (!skip_body) {
    const cudaError_t global = process_error(w, kind);
    if (global == cudaSuccess) {
      result = body(context);
    } else {
      const bool does_something =
          kind == Kind::destroy || (kind == Kind::answer && w.set.fork_child && !w.set.unloading);
      result = global;
      if (does_something && !w.devices.empty()) {
        const cudaError_t answer = body(context);
        if (kind == Kind::answer && answer == cudaSuccess) result = cudaSuccess;
      }
    }
    if (call.injected) result = injected_code;
  }
  call.result = result;
  if (result == cudaErrorNotReady && !w.set.not_ready_sets_last_error) sets_last_error = false;
  if (result == cudaErrorInitializationError && w.set.fork_child) sets_last_error = true;
  if (result != cudaSuccess && sets_last_error) {
    me.last_error = result;
    if (!call.user) ++w.errors_set;
  }
  file(w, call, context.found);
  return result;
}

// --- events

cudaError_t create_event(const char* function, cudaEvent_t* event, unsigned flags) {
  Call start = make_call(function);
  start.value = flags;
  return run(start, Kind::ordinary, [&](Context& c) {
    if (event == nullptr) return cudaErrorInvalidValue;
    c.touch(c.me.device);
    if (const cudaError_t fault = fault_of(c.w, c.me.device)) return fault;
    const auto handle = new_handle<cudaEvent_t>(c.s);
    Event made;
    made.number = static_cast<int>(c.w.event_order.size());
    made.device = c.me.device;
    made.incarnation = c.w.devices[static_cast<std::size_t>(c.me.device)].incarnation;
    made.flags = flags;
    made.user = c.call.user;
    c.w.events.emplace(handle, std::move(made));
    c.w.event_order.push_back(handle);
    if (!c.call.user) {
      ++c.w.created;
      c.w.most_live = std::max(c.w.most_live, ++c.w.live);
    }
    c.call.event = handle;
    *event = handle;
    return cudaSuccess;
  });
}

cudaError_t destroy_event(cudaEvent_t event) {
  return run(event_call("cudaEventDestroy", event), Kind::destroy, [&](Context& c) {
    Event* e = nullptr;
    if (const cudaError_t bad = c.find(event, &e, Violation::double_destroy)) return bad;
    c.call.device = e->device;
    e->destroyed = true;
    e->node.reset();
    const bool was_lost = c.lost(e->device, e->incarnation);
    if (!e->user) {
      ++c.w.destroyed;
      if (!was_lost) --c.w.live;
    }
    if (was_lost) {
      c.violate(Violation::crash, "its event was lost in a device reset");
      return cudaErrorContextIsDestroyed;
    }
    return fault_of(c.w, e->device);
  });
}

cudaError_t record_event(const char* function, cudaEvent_t event, cudaStream_t stream, unsigned flags,
                         bool per_thread) {
  Call start = stream_call(function, stream, per_thread);
  start.event = event;
  start.value = flags;
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    Event* e = nullptr;
    if (const cudaError_t bad = c.find(event, &e)) return bad;
    if (c.lost(e->device, e->incarnation)) {
      c.violate(Violation::crash, "its event was lost in a device reset");
      return cudaErrorContextIsDestroyed;
    }
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (const cudaError_t fault = fault_of(c.w, e->device)) return fault;
    if (e->device != on->device) {
      c.violate(Violation::wrong_device, "event and stream are on different devices");
      return cudaErrorInvalidResourceHandle;
    }
    if (const cudaError_t refused = c.implicit(*on, true)) return refused;
    if (on->capture && on->capture->state.invalidated) return cudaErrorStreamCaptureInvalidated;
    if (on->capture && (flags & cudaEventRecordExternal) != 0) return c.launch(*on, new_node(c.w, nanoseconds{0}));

    if (e->node && !finished(c.w, *e->node))
      c.violate(Violation::rerecord_in_flight, "the event's earlier mark has not been reached");
    ++e->records;
    e->stream_as_passed = stream;
    e->recorded_at = c.w.now;
    if (on->capture) {
      e->node.reset();
      e->capture = on->capture;
      e->capture_stream = on;
      e->capture_offset = on->capture_offset;
      e->capture_work = on->capture_work;
      return cudaSuccess;
    }
    e->capture.reset();
    e->node = new_node(c.w, nanoseconds{0});
    e->node->ready += c.w.set.event_latency;
    c.enqueue(*on, e->node);
    return cudaSuccess;
  });
}

cudaError_t query_event(cudaEvent_t event) {
  return run(event_call("cudaEventQuery", event), Kind::answer, [&](Context& c) -> cudaError_t {
    Event* e = nullptr;
    if (const cudaError_t bad = c.find(event, &e)) return bad;
    c.call.device = e->device;
    if (const cudaError_t bad = c.readable(*e)) return bad;
    if (const cudaError_t refused = c.unsafe_call()) return refused;
    if (!e->node) return cudaSuccess;  // never recorded counts as done
    return finished(c.w, *e->node) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t synchronize_event(cudaEvent_t event) {
  return run(event_call("cudaEventSynchronize", event), Kind::ordinary, [&](Context& c) -> cudaError_t {
    Event* e = nullptr;
    if (const cudaError_t bad = c.find(event, &e)) return bad;
    c.call.device = e->device;
    if (const cudaError_t bad = c.readable(*e)) return bad;
    if (const cudaError_t refused = c.unsafe_call()) return refused;
    const int device = e->device;
    if (!c.wait({e->node})) return cudaErrorUnknown;
    return fault_of(c.w, device);
  });
}

cudaError_t elapsed_time(float* ms, cudaEvent_t start, cudaEvent_t end) {
  Call call = event_call("cudaEventElapsedTime", start);
  call.second_event = end;
  return run(call, Kind::answer, [&](Context& c) -> cudaError_t {
    if (ms == nullptr) return cudaErrorInvalidValue;
    Event* first = nullptr;
    Event* second = nullptr;
    if (const cudaError_t bad = c.find(start, &first)) return bad;
    if (const cudaError_t bad = c.find(end, &second)) return bad;
    c.call.device = first->device;
    if (const cudaError_t bad = c.readable(*first, false)) return bad;
    if (const cudaError_t bad = c.readable(*second, false)) return bad;
    if (!first->node || !second->node) {
      c.violate(Violation::elapsed_unready, "an event was never recorded");
      return cudaErrorInvalidResourceHandle;
    }
    if (((first->flags | second->flags) & cudaEventDisableTiming) != 0) return cudaErrorInvalidResourceHandle;
    if (first->device != second->device) {
      c.violate(Violation::wrong_device, "the events are on different devices");
      return cudaErrorInvalidResourceHandle;
    }
    if (!finished(c.w, *first->node) || !finished(c.w, *second->node)) {
      c.violate(Violation::elapsed_unready, "an event has not finished");
      return cudaErrorNotReady;
    }
    const auto ticks = [&](const Node& n) { return n.end->count() / c.w.set.event_tick.count(); };
    const auto difference = (ticks(*second->node) - ticks(*first->node)) * c.w.set.event_tick.count();
    *ms = static_cast<float>(static_cast<double>(difference) / 1e6);
    if (first != second && !c.w.injected_elapsed.empty()) {
      *ms = c.w.injected_elapsed.front();
      c.w.injected_elapsed.pop_front();
    }
    c.call.elapsed_ms = *ms;
    return cudaSuccess;
  });
}

// --- streams

cudaError_t create_stream(const char* function, cudaStream_t* stream, unsigned flags) {
  Call start = make_call(function);
  start.value = flags;
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (stream == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    c.touch(c.me.device);
    if (const cudaError_t fault = fault_of(c.w, c.me.device)) return fault;
    auto made = std::make_unique<Stream>();
    made->device = c.me.device;
    made->incarnation = c.w.devices[static_cast<std::size_t>(c.me.device)].incarnation;
    made->flags = flags;
    made->blocking = flags != cudaStreamNonBlocking;
    made->id = ++c.s.stream_ids;
    const auto handle = new_handle<cudaStream_t>(c.s);
    c.w.streams.emplace(handle, std::move(made));
    c.call.stream = handle;
    *stream = handle;
    return cudaSuccess;
  });
}

cudaError_t destroy_stream(cudaStream_t stream) {
  return run(stream_call("cudaStreamDestroy", stream, false), Kind::destroy, [&](Context& c) -> cudaError_t {
    if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return cudaErrorInvalidResourceHandle;
    const auto known = c.w.streams.find(stream);
    if (known != c.w.streams.end() && known->second->destroyed) {
      c.violate(Violation::double_destroy, "its stream has been destroyed");
      return cudaErrorInvalidResourceHandle;
    }
    Stream* on = nullptr;
    const cudaError_t bad = c.find(stream, &on);
    if (on != nullptr) {
      c.call.device = on->device;
      on->destroyed = true;  // what is queued still runs
    }
    return bad;
  });
}

cudaError_t query_stream(cudaStream_t stream, bool per_thread) {
  return run(stream_call("cudaStreamQuery", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (const cudaError_t refused = c.implicit(*on, true)) return refused;
    if (on->capture) {
      c.invalidate(*on->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    if (const cudaError_t refused = c.unsafe_call()) return refused;
    prune(c.w, *on);
    return on->queue.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t synchronize_stream(cudaStream_t stream, bool per_thread) {
  return run(stream_call("cudaStreamSynchronize", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (const cudaError_t refused = c.implicit(*on, true)) return refused;
    if (on->capture) {
      c.invalidate(*on->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    if (const cudaError_t refused = c.unsafe_call()) return refused;
    std::vector<NodePtr> nodes{on->last};
    if (on->legacy)  // waits for the blocking streams too
      for (auto& entry : c.w.streams)
        if (entry.second->blocking && entry.second->device == on->device) nodes.push_back(entry.second->last);
    const int device = on->device;
    if (!c.wait(nodes)) return cudaErrorUnknown;
    return fault_of(c.w, device);
  });
}

cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags, bool per_thread) {
  Call start = stream_call("cudaStreamWaitEvent", stream, per_thread);
  start.event = event;
  start.value = flags;
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    Event* e = nullptr;
    if (const cudaError_t bad = c.find(event, &e)) return bad;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (c.lost(e->device, e->incarnation)) {
      c.violate(Violation::crash, "its event was lost in a device reset");
      return cudaErrorContextIsDestroyed;
    }
    if (const cudaError_t refused = c.implicit(*on, true)) return refused;
    const CapturePtr from = e->capture;
    if (on->capture) {
      if (on->capture->state.invalidated) return cudaErrorStreamCaptureInvalidated;
      if (!from || from != on->capture) {
        if (from && !from->state.ended) c.invalidate(*from);
        c.invalidate(*on->capture);
        return from && !from->state.ended ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation;
      }
      if (e->capture_stream->capture_work == e->capture_work) e->capture_stream->unjoined = false;
      on->capture_offset = std::max(on->capture_offset, e->capture_offset);
      return cudaSuccess;
    }
    if (from) {
      if (from->state.ended) return cudaErrorInvalidValue;
      if (from->state.invalidated) return cudaErrorStreamCaptureInvalidated;
      on->capture = from;
      on->capture_offset = e->capture_offset;
      on->capture_work = 0;
      on->unjoined = false;
      from->streams.push_back(on);
      return cudaSuccess;
    }
    if (!e->node) return cudaSuccess;
    const NodePtr n = new_node(c.w, nanoseconds{0});
    depend(*n, e->node);
    c.enqueue(*on, n);
    return cudaSuccess;
  });
}

cudaError_t stream_device(cudaStream_t stream, int* device, bool per_thread) {
  return run(stream_call("cudaStreamGetDevice", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (device == nullptr) return cudaErrorInvalidValue;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    if (const cudaError_t refused = c.implicit(*on, true)) return refused;
    if (on->capture) {
      c.invalidate(*on->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    *device = c.call.device = on->device;
    return cudaSuccess;
  });
}

cudaError_t stream_flags(cudaStream_t stream, unsigned* flags, bool per_thread) {
  return run(stream_call("cudaStreamGetFlags", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (flags == nullptr) return cudaErrorInvalidValue;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    *flags = on->flags;
    return cudaSuccess;
  });
}

cudaError_t stream_id(cudaStream_t stream, unsigned long long* id, bool per_thread) {
  return run(stream_call("cudaStreamGetId", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (id == nullptr) return cudaErrorInvalidValue;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    *id = on->id;
    return cudaSuccess;
  });
}

// --- capture

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->state.invalidated ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaError_t is_capturing(cudaStream_t stream, cudaStreamCaptureStatus* status, bool per_thread) {
  return run(stream_call("cudaStreamIsCapturing", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (status == nullptr) return cudaErrorInvalidValue;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (const cudaError_t refused = c.implicit(*on, false)) return refused;
    *status = status_of(*on);
    return cudaSuccess;
  });
}

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                         std::size_t* count, bool per_thread) {
  Call start = stream_call("cudaStreamGetCaptureInfo", stream, per_thread);
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (status == nullptr) return cudaErrorInvalidValue;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (const cudaError_t refused = c.implicit(*on, false)) return refused;
    *status = status_of(*on);
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    if (id != nullptr) *id = on->capture->state.id;
    // The graph under construction is not modelled.
    if (graph != nullptr) *graph = nullptr;
    if (dependencies != nullptr) *dependencies = nullptr;
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = 0;
    return cudaSuccess;
  });
}

cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode, bool per_thread) {
  Call start = stream_call("cudaStreamBeginCapture", stream, per_thread);
  start.value = mode;
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (on->legacy) return cudaErrorStreamCaptureUnsupported;
    if (on->capture) return cudaErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->state.id = c.w.captures.size() + 1;
    capture->state.mode = mode;
    capture->thread = c.me.ordinal;
    capture->origin = on;
    capture->streams.push_back(on);
    on->capture = capture;
    on->capture_offset = nanoseconds{0};
    on->capture_work = 0;
    on->unjoined = false;
    c.w.captures.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph, bool per_thread) {
  return run(stream_call("cudaStreamEndCapture", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    if (graph != nullptr) *graph = nullptr;
    const CapturePtr capture = on->capture;
    if (!capture) return cudaErrorIllegalState;
    if (capture->state.mode != cudaStreamCaptureModeRelaxed && capture->thread != c.me.ordinal)
      return cudaErrorStreamCaptureWrongThread;
    if (capture->origin != on) {
      c.invalidate(*capture);
      return cudaErrorStreamCaptureUnmatched;
    }
    bool unjoined = false;
    for (Stream* member : capture->streams) {
      unjoined = unjoined || member->unjoined;
      member->capture.reset();
    }
    capture->state.ended = true;
    if (capture->state.invalidated)
      capture->state.end_result = cudaErrorStreamCaptureInvalidated;
    else if (unjoined)
      capture->state.end_result = cudaErrorStreamCaptureUnjoined;
    else if (graph != nullptr)
      c.w.graphs.emplace(*graph = new_handle<cudaGraph_t>(c.s), Graph{capture->state.nodes, on->capture_offset});
    return capture->state.end_result;
  });
}

cudaError_t exchange_mode(cudaStreamCaptureMode* mode) {
  Call start = make_call("cudaThreadExchangeStreamCaptureMode");
  start.value = mode != nullptr ? *mode : -1;
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
      return cudaErrorInvalidValue;
    c.touch(c.me.device);
    std::swap(*mode, c.me.mode);  // also after a fault
    return cudaSuccess;
  });
}

// --- graphs

cudaError_t unknown_graph(Context& c) {
  c.violate(Violation::unknown_handle, "its graph is not one that exists");
  return cudaErrorInvalidValue;
}

cudaError_t graph_nodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return run(make_call("cudaGraphGetNodes"), Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (count == nullptr) return cudaErrorInvalidValue;
    const auto known = c.w.graphs.find(graph);
    if (known == c.w.graphs.end()) return unknown_graph(c);
    if (nodes != nullptr) {
      for (std::size_t i = 0; i < *count; ++i)
        nodes[i] = i < known->second.nodes
                       ? reinterpret_cast<cudaGraphNode_t>(reinterpret_cast<std::uintptr_t>(graph) + 1 + i)
                       : nullptr;
    }
    *count = known->second.nodes;
    return cudaSuccess;
  });
}

cudaError_t instantiate_graph(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  Call start = make_call("cudaGraphInstantiate");
  start.value = static_cast<long long>(flags);
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (exec == nullptr) return cudaErrorInvalidValue;
    const auto known = c.w.graphs.find(graph);
    if (known == c.w.graphs.end()) return unknown_graph(c);
    c.w.execs.emplace(*exec = new_handle<cudaGraphExec_t>(c.s), known->second);
    return cudaSuccess;
  });
}

cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream, bool per_thread) {
  return run(stream_call("cudaGraphLaunch", stream, per_thread), Kind::ordinary, [&](Context& c) -> cudaError_t {
    const auto known = c.w.execs.find(exec);
    if (known == c.w.execs.end()) return unknown_graph(c);
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    return c.launch(*on, new_node(c.w, known->second.duration));
  });
}

cudaError_t destroy_exec(cudaGraphExec_t exec) {
  return run(make_call("cudaGraphExecDestroy"), Kind::destroy,
             [&](Context& c) -> cudaError_t { return c.w.execs.erase(exec) == 1 ? cudaSuccess : unknown_graph(c); });
}

cudaError_t destroy_graph(cudaGraph_t graph) {
  return run(make_call("cudaGraphDestroy"), Kind::destroy,
             [&](Context& c) -> cudaError_t { return c.w.graphs.erase(graph) == 1 ? cudaSuccess : unknown_graph(c); });
}

// --- devices and errors

cudaError_t set_device(int device) {
  Call start = make_call("cudaSetDevice");
  start.device = device;
  return run(start, Kind::ordinary, [&](Context& c) -> cudaError_t {
    if (device < 0 || static_cast<std::size_t>(device) >= c.w.devices.size()) return cudaErrorInvalidDevice;
    c.touch(device);  // since CUDA 12
    c.me.device = device;
    return cudaSuccess;
  });
}

cudaError_t synchronize_device() {
  return run(make_call("cudaDeviceSynchronize"), Kind::ordinary, [&](Context& c) -> cudaError_t {
    const int device = c.me.device;
    c.touch(device);
    if (const cudaError_t fault = fault_of(c.w, device)) return fault;
    bool capturing = false;
    for (auto& capture : c.w.captures) {
      if (capture->state.ended || capture->origin->device != device) continue;
      c.invalidate(*capture);
      capturing = true;
    }
    if (capturing) return cudaErrorStreamCaptureUnsupported;
    if (const cudaError_t refused = c.unsafe_call()) return refused;
    const Device& d = c.w.devices[static_cast<std::size_t>(device)];
    std::vector<NodePtr> nodes;
    for (auto& entry : c.w.streams)
      if (entry.second->device == device && entry.second->incarnation == d.incarnation)
        nodes.push_back(entry.second->last);
    for (auto& entry : d.per_thread) nodes.push_back(entry.second->last);
    if (d.legacy) nodes.push_back(d.legacy->last);
    if (!c.wait(nodes)) return cudaErrorUnknown;
    return fault_of(c.w, device);
  });
}

cudaError_t reset_device() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a real one takes longer; code may rely on that much
  return run(make_call("cudaDeviceReset"), Kind::ordinary, [&](Context& c) {
    Device& d = c.w.devices[static_cast<std::size_t>(c.me.device)];
    for (auto& entry : c.w.events)
      if (entry.second.device == c.me.device && entry.second.incarnation == d.incarnation && !entry.second.destroyed &&
          !entry.second.user)
        --c.w.live;
    for (auto& capture : c.w.captures) {
      if (capture->state.ended || capture->origin->device != c.me.device) continue;
      capture->state.ended = true;
      for (Stream* member : capture->streams) member->capture.reset();
    }
    ++d.incarnation;
    d.context.exists = false;
    d.fault_at.reset();
    if (d.legacy) c.w.lost_streams.push_back(std::move(d.legacy));
    for (auto& entry : d.per_thread) c.w.lost_streams.push_back(std::move(entry.second));
    d.per_thread.clear();
    return cudaSuccess;
  });
}

cudaError_t answer_int(const char* function, Kind kind, int* out, int (*value)(const Context&)) {
  return run(make_call(function), kind, [&](Context& c) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = value(c);
    return cudaSuccess;
  });
}

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

constexpr ErrorText error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorCudartUnloading, "cudaErrorCudartUnloading", "driver shutting down"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorContextIsDestroyed, "cudaErrorContextIsDestroyed", "context is destroyed"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"}};

const ErrorText* text_of(cudaError_t code) {
  for (const auto& entry : error_texts)
    if (entry.code == code) return &entry;
  return nullptr;
}

// The control functions see stream 0 as the legacy stream and are never logged. A wrong handle is a mistake
// of the test.
Stream& control_stream(Store& s, Lock& lock, cudaStream_t handle) {
  Call call = stream_call("control", handle, false);
  Context context{s, *s.world, this_thread(s), call, lock, {}};
  Stream* found = nullptr;
  if (s.world->devices.empty()) misuse("there is no device");
  context.find(handle, &found);
  if (found == nullptr) misuse("not a stream");
  return *found;
}

}  // namespace

// --- control

void reset(int devices) {
  Store& s = store();
  std::unique_ptr<World> old;
  const Lock lock(s.mutex);
  for (auto& n : s.world->unresolved) n->after.clear();  // a long chain would be freed recursively
  old = std::exchange(s.world, fresh_world(++s.epochs, devices));
  s.changed.notify_all();
}

nanoseconds now() {
  const Lock lock(store().mutex);
  return store().world->now;
}

void advance(nanoseconds by) {
  if (by < nanoseconds{0}) misuse("the clock does not run backwards");
  Lock lock(store().mutex);
  move_clock(store(), lock, store().world->now + by);
}

void advance_to(nanoseconds t) {
  Lock lock(store().mutex);
  move_clock(store(), lock, std::max(t, store().world->now));
}

void finish_all() {
  Lock lock(store().mutex);
  for (;;) {
    World& w = *store().world;
    nanoseconds end = w.now;
    const auto look = [&](const Stream& stream) {
      for (const auto& n : stream.queue)
        if (n->end) end = std::max(end, *n->end);
    };
    for (auto& entry : w.streams) look(*entry.second);
    for (auto& d : w.devices) {
      if (d.legacy) look(*d.legacy);
      for (auto& entry : d.per_thread) look(*entry.second);
    }
    if (end <= w.now) return;
    move_clock(store(), lock, end);
  }
}

void at(nanoseconds t, std::function<void()> hook) {
  const Lock lock(store().mutex);
  store().world->hooks.push_back({t, nullptr, std::move(hook)});
}

void when_done(cudaStream_t stream, std::function<void()> hook) {
  Lock lock(store().mutex);
  const Stream& on = control_stream(store(), lock, stream);
  store().world->hooks.push_back({store().world->now, on.last, std::move(hook)});
}

cudaError_t work(cudaStream_t stream, nanoseconds duration) {
  return run(stream_call("launch", stream, false), Kind::launch, [&](Context& c) -> cudaError_t {
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    return c.launch(*on, new_node(c.w, duration));
  });
}

cudaError_t kernel_fault(cudaStream_t stream, nanoseconds duration, cudaError_t code) {
  return run(stream_call("launch", stream, false), Kind::launch, [&](Context& c) -> cudaError_t {
    Stream* on = nullptr;
    if (const cudaError_t bad = c.find(stream, &on)) return bad;
    c.call.device = on->device;
    const NodePtr n = new_node(c.w, duration);
    n->fault_device = on->device;
    n->fault_code = code;
    n->incarnation = on->incarnation;
    return c.launch(*on, n);
  });
}

void fault_device(int device, cudaError_t code) {
  const Lock lock(store().mutex);
  World& w = *store().world;
  set_fault(w.devices.at(static_cast<std::size_t>(device)), w.now, code);
}

Gate::Gate(cudaStream_t stream) : id_(0) {
  Store& s = store();
  Lock lock(s.mutex);
  Stream& on = control_stream(s, lock, stream);
  if (on.capture) misuse("a gate on a capturing stream");
  id_ = ++s.gates;
  s.world->gates.emplace(id_, std::nullopt);
  const NodePtr n = new_node(*s.world, nanoseconds{0});
  n->gate = id_;
  push(*s.world, on, n);
}

void Gate::open() {
  Store& s = store();
  const Lock lock(s.mutex);
  const auto gate = s.world->gates.find(id_);
  if (gate == s.world->gates.end() || gate->second) return;
  gate->second = s.world->now;
  resolve_all(*s.world);
  s.changed.notify_all();
}

namespace {
template <class T>
void change(T Settings::*member, T value) {
  const Lock lock(store().mutex);
  store().world->set.*member = value;
}
}  // namespace

void set_not_ready_sets_last_error(bool on) { change(&Settings::not_ready_sets_last_error, on); }
void set_waits_advance(bool on) { change(&Settings::waits_advance, on); }
void set_gate_patience(std::chrono::milliseconds limit) { change(&Settings::gate_patience, limit); }
void set_call_cost(nanoseconds cost) { change(&Settings::call_cost, cost); }
void set_event_latency(nanoseconds latency) { change(&Settings::event_latency, latency); }
void set_event_tick(nanoseconds tick) { change(&Settings::event_tick, std::max(tick, nanoseconds{1})); }
void set_queue_depth(std::size_t commands) { change(&Settings::queue_depth, commands); }
void set_unloading(bool on) { change(&Settings::unloading, on); }
void set_fork_child(bool on) { change(&Settings::fork_child, on); }
void set_no_device_error(cudaError_t code) { change(&Settings::no_device_error, code); }
void set_keep_log(bool on) { change(&Settings::keep_log, on); }

void set_before_call(std::function<void(std::string_view)> hook) {
  const Lock lock(store().mutex);
  store().world->before_call = std::move(hook);
}

std::vector<Call> log() {
  const Lock lock(store().mutex);
  return store().world->log;
}

std::vector<std::string> call_names() {
  const Lock lock(store().mutex);
  std::vector<std::string> names;
  for (const auto& call : store().world->log)
    if (!call.user) names.emplace_back(call.function);
  return names;
}

void clear_log() {
  const Lock lock(store().mutex);
  World& w = *store().world;
  w.log.clear();
  w.counts.clear();
  w.total_calls = 0;
  w.errors_set = 0;
  w.violations.clear();
}

std::uint64_t calls(std::string_view function) {
  const Lock lock(store().mutex);
  const auto count = store().world->counts.find(function);
  return count == store().world->counts.end() ? 0 : count->second;
}

std::uint64_t calls() {
  const Lock lock(store().mutex);
  return store().world->total_calls;
}

std::uint64_t errors_set() {
  const Lock lock(store().mutex);
  return store().world->errors_set;
}

bool inside_call() noexcept { return the_thread.calls > 0; }

UserCode::UserCode() noexcept { ++the_thread.user; }
UserCode::~UserCode() { --the_thread.user; }

const char* name(Violation kind) noexcept {
  switch (kind) {
    case Violation::null_handle: return "null_handle";
    case Violation::unknown_handle: return "unknown_handle";
    case Violation::use_after_destroy: return "use_after_destroy";
    case Violation::double_destroy: return "double_destroy";
    case Violation::rerecord_in_flight: return "rerecord_in_flight";
    case Violation::waiting_call: return "waiting_call";
    case Violation::would_block: return "would_block";
    case Violation::crash: return "crash";
    case Violation::default_stream: return "default_stream";
    case Violation::wrong_device: return "wrong_device";
    case Violation::elapsed_unready: return "elapsed_unready";
    case Violation::capture_destroyed: return "capture_destroyed";
  }
  return "?";
}

std::vector<ViolationEntry> violations() {
  const Lock lock(store().mutex);
  return store().world->violations;
}

std::size_t violations(Violation kind) {
  const Lock lock(store().mutex);
  const auto& all = store().world->violations;
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const ViolationEntry& entry) { return entry.kind == kind; }));
}

std::string violation_text() {
  const Lock lock(store().mutex);
  std::string text;
  for (const auto& entry : store().world->violations)
    text +=
        std::string(name(entry.kind)) + " at " + std::to_string(entry.call.time.count()) + " ns: " + entry.text + '\n';
  return text;
}

void inject(Injection injection) {
  const Lock lock(store().mutex);
  store().world->injections.push_back(std::move(injection));
}

void fail_next(std::string_view function, cudaError_t code) { fail_nth(function, 1, code); }

void fail_nth(std::string_view function, std::uint64_t n, cudaError_t code) {
  if (n == 0) misuse("fail_nth counts from 1");
  Injection injection;
  injection.function = function;
  injection.code = code;
  injection.skip = n - 1;
  inject(std::move(injection));
}

void fail_always(std::string_view function, cudaError_t code) {
  Injection injection;
  injection.function = function;
  injection.code = code;
  injection.times = unlimited;
  inject(std::move(injection));
}

void clear_injections() {
  const Lock lock(store().mutex);
  store().world->injections.clear();
  store().world->injected_elapsed.clear();
}

void inject_elapsed(std::vector<float> milliseconds) {
  const Lock lock(store().mutex);
  auto& queue = store().world->injected_elapsed;
  queue.insert(queue.end(), milliseconds.begin(), milliseconds.end());
}

std::uint64_t events_created() {
  const Lock lock(store().mutex);
  return store().world->created;
}

std::uint64_t events_destroyed() {
  const Lock lock(store().mutex);
  return store().world->destroyed;
}

std::uint64_t live_events() {
  const Lock lock(store().mutex);
  return store().world->live;
}

std::uint64_t most_live_events() {
  const Lock lock(store().mutex);
  return store().world->most_live;
}

EventState state(cudaEvent_t event) {
  const Lock lock(store().mutex);
  const World& w = *store().world;
  EventState answer;
  const auto known = w.events.find(event);
  if (known == w.events.end()) return answer;
  const Event& e = known->second;
  answer.number = e.number;
  answer.device = e.device;
  answer.live = !e.destroyed && w.devices[static_cast<std::size_t>(e.device)].incarnation == e.incarnation;
  answer.captured = e.capture != nullptr;
  answer.records = e.records;
  answer.stream = e.stream_as_passed;
  answer.recorded_at = e.recorded_at;
  if (e.node) {
    answer.reached_at = e.node->end;
    answer.finished = finished(w, *e.node);
  }
  return answer;
}

std::vector<cudaEvent_t> all_events() {
  const Lock lock(store().mutex);
  return store().world->event_order;
}

std::optional<nanoseconds> idle_at(cudaStream_t stream) {
  Lock lock(store().mutex);
  const Stream& on = control_stream(store(), lock, stream);
  return on.last ? on.last->end : std::optional<nanoseconds>(nanoseconds{0});
}

std::size_t queued(cudaStream_t stream) {
  Lock lock(store().mutex);
  Stream& on = control_stream(store(), lock, stream);
  prune(*store().world, on);
  return on.queue.size();
}

ContextState context(int device) {
  const Lock lock(store().mutex);
  const World& w = *store().world;
  ContextState answer = w.devices.at(static_cast<std::size_t>(device)).context;
  answer.fault = fault_of(w, device);
  return answer;
}

std::vector<int> devices_with_context() {
  const Lock lock(store().mutex);
  std::vector<int> answer;
  const auto& devices = store().world->devices;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].context.exists) answer.push_back(static_cast<int>(i));
  return answer;
}

std::vector<CaptureState> captures() {
  const Lock lock(store().mutex);
  std::vector<CaptureState> answer;
  for (const auto& capture : store().world->captures) answer.push_back(capture->state);
  return answer;
}

cudaError_t last_error() {
  const Lock lock(store().mutex);
  return this_thread(store()).last_error;
}

void set_last_error(cudaError_t code) {
  const Lock lock(store().mutex);
  this_thread(store()).last_error = code;
}

int current_device() {
  const Lock lock(store().mutex);
  return this_thread(store()).device;
}

cudaStreamCaptureMode capture_mode() {
  const Lock lock(store().mutex);
  return this_thread(store()).mode;
}

}  // namespace fake_cuda

// --- the runtime's functions

// The header declares the plain names, so the compiler checks them; the _ptsz names take their types from those.

extern "C" {

decltype(cudaEventRecord) cudaEventRecord_ptsz;
decltype(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz;
decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(cudaStreamGetDevice) cudaStreamGetDevice_ptsz;
decltype(cudaStreamGetFlags) cudaStreamGetFlags_ptsz;
decltype(cudaStreamGetId) cudaStreamGetId_ptsz;
decltype(cudaStreamIsCapturing) cudaStreamIsCapturing_ptsz;
decltype(cudaStreamQuery) cudaStreamQuery_ptsz;
decltype(cudaStreamSynchronize) cudaStreamSynchronize_ptsz;
decltype(cudaStreamWaitEvent) cudaStreamWaitEvent_ptsz;

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event) {
  return fake_cuda::create_event("cudaEventCreate", event, cudaEventDefault);
}
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return fake_cuda::create_event("cudaEventCreateWithFlags", event, flags);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) { return fake_cuda::destroy_event(event); }
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return fake_cuda::record_event("cudaEventRecord", event, stream, 0, false);
}
cudaError_t CUDARTAPI cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return fake_cuda::record_event("cudaEventRecord", event, stream, 0, true);
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return fake_cuda::record_event("cudaEventRecordWithFlags", event, stream, flags, false);
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return fake_cuda::record_event("cudaEventRecordWithFlags", event, stream, flags, true);
}
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) { return fake_cuda::query_event(event); }
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) { return fake_cuda::synchronize_event(event); }
cudaError_t CUDARTAPI cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return fake_cuda::elapsed_time(ms, start, end);
}

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream) {
  return fake_cuda::create_stream("cudaStreamCreate", stream, cudaStreamDefault);
}
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return fake_cuda::create_stream("cudaStreamCreateWithFlags", stream, flags);
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int) {
  return fake_cuda::create_stream("cudaStreamCreateWithPriority", stream, flags);
}
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) { return fake_cuda::destroy_stream(stream); }
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream) { return fake_cuda::query_stream(stream, false); }
cudaError_t CUDARTAPI cudaStreamQuery_ptsz(cudaStream_t stream) { return fake_cuda::query_stream(stream, true); }
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) {
  return fake_cuda::synchronize_stream(stream, false);
}
cudaError_t CUDARTAPI cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return fake_cuda::synchronize_stream(stream, true);
}
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return fake_cuda::wait_event(stream, event, flags, false);
}
cudaError_t CUDARTAPI cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return fake_cuda::wait_event(stream, event, flags, true);
}
cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return fake_cuda::stream_device(stream, device, false);
}
cudaError_t CUDARTAPI cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return fake_cuda::stream_device(stream, device, true);
}
cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return fake_cuda::stream_flags(stream, flags, false);
}
cudaError_t CUDARTAPI cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int* flags) {
  return fake_cuda::stream_flags(stream, flags, true);
}
cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return fake_cuda::stream_id(stream, id, false);
}
cudaError_t CUDARTAPI cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
  return fake_cuda::stream_id(stream, id, true);
}

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return fake_cuda::exchange_mode(mode);
}
cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return fake_cuda::begin_capture(stream, mode, false);
}
cudaError_t CUDARTAPI cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return fake_cuda::begin_capture(stream, mode, true);
}
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return fake_cuda::end_capture(stream, graph, false);
}
cudaError_t CUDARTAPI cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return fake_cuda::end_capture(stream, graph, true);
}
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return fake_cuda::is_capturing(stream, status, false);
}
cudaError_t CUDARTAPI cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return fake_cuda::is_capturing(stream, status, true);
}

// The function took other arguments before CUDA 13.0.
#if CUDART_VERSION >= 13000
decltype(cudaStreamGetCaptureInfo) cudaStreamGetCaptureInfo_ptsz;

cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* graph,
                                               const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                               size_t* count) {
  return fake_cuda::capture_info(stream, status, id, graph, dependencies, edges, count, false);
}
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                                    unsigned long long* id, cudaGraph_t* graph,
                                                    const cudaGraphNode_t** dependencies,
                                                    const cudaGraphEdgeData** edges, size_t* count) {
  return fake_cuda::capture_info(stream, status, id, graph, dependencies, edges, count, true);
}
#endif

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return fake_cuda::graph_nodes(graph, nodes, count);
}
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return fake_cuda::instantiate_graph(exec, graph, flags);
}
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return fake_cuda::launch_graph(exec, stream, false);
}
cudaError_t CUDARTAPI cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return fake_cuda::launch_graph(exec, stream, true);
}
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) { return fake_cuda::destroy_exec(exec); }
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) { return fake_cuda::destroy_graph(graph); }

cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  return fake_cuda::answer_int("cudaGetDevice", fake_cuda::Kind::ordinary, device,
                               [](const fake_cuda::Context& c) { return c.me.device; });
}
cudaError_t CUDARTAPI cudaSetDevice(int device) { return fake_cuda::set_device(device); }
cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  return fake_cuda::answer_int("cudaGetDeviceCount", fake_cuda::Kind::ordinary, count,
                               [](const fake_cuda::Context& c) { return static_cast<int>(c.w.devices.size()); });
}
cudaError_t CUDARTAPI cudaDeviceSynchronize(void) { return fake_cuda::synchronize_device(); }
cudaError_t CUDARTAPI cudaDeviceReset(void) { return fake_cuda::reset_device(); }
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  return fake_cuda::answer_int("cudaDriverGetVersion", fake_cuda::Kind::version, version,
                               [](const fake_cuda::Context& c) { return c.w.devices.empty() ? 0 : 13000; });
}
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  return fake_cuda::answer_int("cudaRuntimeGetVersion", fake_cuda::Kind::version, version,
                               [](const fake_cuda::Context&) { return 13000; });
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
  return fake_cuda::run(fake_cuda::make_call("cudaPeekAtLastError"), fake_cuda::Kind::error_state,
                        [](fake_cuda::Context& c) { return c.me.last_error; });
}
cudaError_t CUDARTAPI cudaGetLastError(void) {
  return fake_cuda::run(fake_cuda::make_call("cudaGetLastError"), fake_cuda::Kind::error_state,
                        [](fake_cuda::Context& c) { return std::exchange(c.me.last_error, cudaSuccess); });
}
const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  const auto* entry = fake_cuda::text_of(error);
  return entry != nullptr ? entry->name : "unrecognized error code";
}
const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  const auto* entry = fake_cuda::text_of(error);
  return entry != nullptr ? entry->text : "unrecognized error code";
}

}  // extern "C"
