/// Where the rows of a writer go. Not API.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "call_guarded.hpp"

namespace steptimer {
namespace detail {

/// Whole rows to a stream, until it fails: then one warning, and nothing more is written.
///
/// A row is one write() into the stream's buffer. The buffer is flushed before it could run over in the middle of a
/// row, and after a row that begins a second or more after the last flush. So whole rows are handed to the system. It
/// takes them over page by page, and a SIGKILL between two pages leaves the beginning of a row.
class RowStream {
 public:
  RowStream(std::ostream& out, const char* writer, std::function<void(std::string_view)> on_warning)
      : out_(&out), writer_(writer), on_warning_(std::move(on_warning)) {}
  RowStream(RowStream&& other) noexcept
      : out_(std::exchange(other.out_, nullptr)),
        writer_(other.writer_),
        on_warning_(std::move(other.on_warning_)),
        lost_(other.lost_),
        waiting_rows_(other.waiting_rows_),
        waiting_bytes_(other.waiting_bytes_),
        flushed_at_(other.flushed_at_) {}
  RowStream& operator=(RowStream&&) = delete;
  ~RowStream() { flush(); }

  /// What is no record's: a header, the end of an array.
  void write_frame(std::string_view text) noexcept {
    waiting_bytes_ += text.size();
    attempt([&] { out_->write(text.data(), static_cast<std::streamsize>(text.size())); });
  }

  /// The row of a record that began at `host_start`.
  void write_row(std::string_view row, std::chrono::nanoseconds host_start) noexcept {
    if (waiting_bytes_ + row.size() > most_waiting_bytes) flush();
    if (out_ == nullptr) {
      ++lost_;
      return;
    }
    ++waiting_rows_;
    write_frame(row);
    if (second_has_passed(host_start)) {
      flush();
      flushed_at_ = host_start;
    }
  }

  void flush() noexcept {
    attempt([&] { out_->flush(); });
    waiting_rows_ = 0;
    waiting_bytes_ = 0;
  }

  std::uint64_t lost() const noexcept { return lost_; }

 private:
  static constexpr std::size_t most_waiting_bytes = 3000;  // file streams have buffers of 4 KiB and more

  /// True too for a time before the last flush, since the difference wraps: host_start begins again after reset().
  bool second_has_passed(std::chrono::nanoseconds now) const noexcept {
    constexpr std::uint64_t second = 1'000'000'000;
    return static_cast<std::uint64_t>(now.count()) - static_cast<std::uint64_t>(flushed_at_.count()) >= second;
  }

  template <class F>
  void attempt(F&& f) noexcept {
    if (out_ == nullptr) return;
    if (call_guarded(f) && !out_->fail()) return;
    out_ = nullptr;
    lost_ += waiting_rows_;
    (void)call_guarded([&] { warn(); });
  }

  void warn() const {
    const std::string line = std::string("steptimer: ") + writer_ +
                             " could not write to its stream; it drops further records and counts them in lost(): "
                             "check the disk, pipe or file behind the stream";
    if (on_warning_)
      on_warning_(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  }

  std::ostream* out_;  // nullptr once it has failed, or was moved from
  const char* writer_;
  std::function<void(std::string_view)> on_warning_;
  std::uint64_t lost_ = 0;
  std::uint64_t waiting_rows_ = 0;  // in the stream's buffer, as far as is known
  std::size_t waiting_bytes_ = 0;
  std::chrono::nanoseconds flushed_at_{0};
};

}  // namespace detail
}  // namespace steptimer
