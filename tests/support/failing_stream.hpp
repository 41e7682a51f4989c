// A stream that takes so many bytes and no more, as a disk that fills up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <streambuf>
#include <string>

class FailingStream : private std::streambuf, public std::ostream {
 public:
  explicit FailingStream(std::size_t room) : std::ostream(static_cast<std::streambuf*>(this)), room_(room) {}

  const std::string& written() const { return written_; }
  int writes() const { return writes_; }
  int flushes() const { return flushes_; }

 private:
  std::streamsize xsputn(const char* text, std::streamsize length) override {
    ++writes_;
    const std::size_t taken = (std::min)(static_cast<std::size_t>(length), room_ - written_.size());
    written_.append(text, taken);
    return static_cast<std::streamsize>(taken);
  }
  int sync() override {
    ++flushes_;
    return 0;
  }

  std::size_t room_;
  std::string written_;
  int writes_ = 0;
  int flushes_ = 0;
};
