// is_backend_v: true for what a timer can measure with, false for each near miss.

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;
using std::chrono::nanoseconds;

static_assert(is_backend_v<CpuBackend>);
static_assert(is_backend_v<ManualBackend>);
static_assert(is_backend_v<NullBackend>);

// The smallest one that is right; every type below is this one with a single mistake.
struct Right : BackendDefaults {
  using Mark = int;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const Mark&, const Mark&, nanoseconds&) noexcept { return MarkStatus::ok; }
};
static_assert(is_backend_v<Right>);

struct CallsByValue : BackendDefaults {  // takes less than it is given: right as well
  using Mark = int;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(Mark) const noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(Mark, Mark, nanoseconds&) const noexcept { return MarkStatus::ok; }
};
static_assert(is_backend_v<CallsByValue>);

static_assert(!is_backend_v<int>);
static_assert(!is_backend_v<void>);
static_assert(!is_backend_v<Right*>);
static_assert(!is_backend_v<const Right>);
static_assert(!is_backend_v<BackendDefaults>);

struct NoMark : BackendDefaults {
  MarkStatus record(int&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const int&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const int&, const int&, nanoseconds&) noexcept { return MarkStatus::ok; }
};
static_assert(!is_backend_v<NoMark>);

struct ThrowingMark {
  ThrowingMark() = default;
  ThrowingMark(ThrowingMark&&) noexcept(false) {}
  ThrowingMark& operator=(ThrowingMark&&) noexcept(false) { return *this; }
};
struct MarkMayThrow : Right {
  using Mark = ThrowingMark;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const Mark&, const Mark&, nanoseconds&) noexcept { return MarkStatus::ok; }
};
static_assert(!is_backend_v<MarkMayThrow>);

struct RecordMayThrow : Right {
  MarkStatus record(Mark&, HostTime) { return MarkStatus::ok; }
};
static_assert(!is_backend_v<RecordMayThrow>);

struct RecordSaysBool : Right {
  bool record(Mark&, HostTime) noexcept { return true; }
};
static_assert(!is_backend_v<RecordSaysBool>);

struct QueryChangesMark : Right {
  MarkStatus query(Mark&) noexcept { return MarkStatus::ok; }
};
static_assert(!is_backend_v<QueryChangesMark>);

struct QuerySaysBool : Right {
  bool query(const Mark&) noexcept { return true; }
};
static_assert(!is_backend_v<QuerySaysBool>);

struct ElapsedInMilliseconds : Right {
  MarkStatus elapsed(const Mark&, const Mark&, float&) noexcept { return MarkStatus::ok; }
};
static_assert(!is_backend_v<ElapsedInMilliseconds>);

struct PrivateQuery : Right {
 private:
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
};
static_assert(!is_backend_v<PrivateQuery>);

struct ReleaseMayThrow : Right {
  void release() {}
};
static_assert(!is_backend_v<ReleaseMayThrow>);

struct BeginReadingSaysNothing : Right {
  void begin_reading() noexcept {}
};
static_assert(!is_backend_v<BeginReadingSaysNothing>);

struct Immovable : Right {
  Immovable() = default;
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;
};
static_assert(!is_backend_v<Immovable>);

struct MoveMayThrow : Right {
  MoveMayThrow() = default;
  MoveMayThrow(MoveMayThrow&&) noexcept(false) {}
  MoveMayThrow& operator=(MoveMayThrow&&) noexcept(false) { return *this; }
};
static_assert(!is_backend_v<MoveMayThrow>);

struct Final final : BackendDefaults {  // final, and its Mark can only be moved: right
  struct Mark {
    Mark() = default;
    Mark(Mark&&) = default;
    Mark& operator=(Mark&&) = default;
  };
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const Mark&, const Mark&, nanoseconds&) noexcept { return MarkStatus::ok; }
};
static_assert(is_backend_v<Final>);
