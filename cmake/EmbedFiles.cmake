# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=ReportAssets.h -DFOLDER=tools/tenon/report -P EmbedFiles.cmake
# The files of the report's page as a C++ header.
set(text "// Made from the files of ${FOLDER}.\n#pragma once\n\n#include <string_view>\n\n")
string(APPEND text "namespace tenon::tool::assets {\n")
foreach(pair page=page.html style=style.css)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 file)
  file(READ ${FOLDER}/${file} content)
  string(APPEND text "inline constexpr std::string_view ${name} = R\"tenon-asset(${content})tenon-asset\";\n")
endforeach()
string(APPEND text "inline constexpr std::string_view scripts[] = {\n")
foreach(file core overview roofline timings code main)
  file(READ ${FOLDER}/${file}.js content)
  string(APPEND text "R\"tenon-asset(${content})tenon-asset\",\n")
endforeach()
string(APPEND text "};\n} // namespace tenon::tool::assets\n")
file(WRITE ${OUTPUT} "${text}")
