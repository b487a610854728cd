// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// What the other end of a stream can show. A file or a pipe gets plain text: no colour, no bars, nothing cut short.
namespace tenon::tool {

struct Terminal {
  bool interactive = false; ///< a terminal that moves its cursor
  bool color = false;       ///< and may be given colour: NO_COLOR is not set
  bool unicode = false;     ///< the locale's encoding is UTF-8
  int width = 0;            ///< columns; 0: no limit
};
const Terminal &standardOutput();
const Terminal &standardError();

enum class Style : unsigned char { plain, bold, dim, good, bad, warn };
/// The text in that style where the stream takes colour.
std::string styled(const Terminal &terminal, Style style, std::string_view text);

/// Columns that UTF-8 text takes (each code point one).
size_t columnsOf(std::string_view text);
/// The text, shortened to at most `columns` with an ellipsis.
std::string shortened(std::string_view text, size_t columns, bool unicode);

} // namespace tenon::tool
