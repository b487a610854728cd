// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// A place in the user's source. Kept as plain data so that it can live in IR, profiles and error texts.
struct SourceLine {
  std::string file;
  unsigned line = 0;

  SourceLine() = default;
  SourceLine(const std::source_location &location) : file(location.file_name()), line(location.line()) {}
  explicit operator bool() const { return line != 0; }
  std::string str() const { return file + ":" + std::to_string(line); }
};

/// The one exception of the library: the user's program, launch or environment is wrong. what() is one sentence that says
/// what is wrong, where ("file:line: ..." when it is in the user's source) and what would be right.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
  Error(const SourceLine &where, const std::string &message)
      : std::runtime_error(where ? where.str() + ": " + message : message), where_(where) {}

  const SourceLine &where() const { return where_; }

private:
  SourceLine where_;
};

/// A defect of Tenon itself, never the user's: says so, and names a reproducer file when one was written.
class InternalError : public Error {
public:
  explicit InternalError(const std::string &message) : Error("internal error in Tenon (please report it): " + message) {}
  /// The same with more to say.
  InternalError(const InternalError &error, const std::string &more) : Error(error.what() + more) {}
};

} // namespace tenon
#pragma GCC visibility pop
