# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=Commit.h -DFOLDER=SOURCE -P WriteCommit.cmake: the commit that is built, as a C++ constant ("unknown"
# in a folder that is not the top of a repository: the commit would be somebody else's). The file is left alone where
# nothing changed, so that nothing is compiled again.
find_program(GIT git)
set(commit "")
if(GIT)
  execute_process(COMMAND ${GIT} -C ${FOLDER} rev-parse --show-cdup
    OUTPUT_VARIABLE up OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND up STREQUAL "")
    execute_process(COMMAND ${GIT} -C ${FOLDER} describe --always --dirty --abbrev=12
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "inline constexpr const char builtCommit[] = \"${commit}\";\n")
