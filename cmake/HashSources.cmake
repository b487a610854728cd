# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDERS=a,b -DOUTPUT=file.h -DNAME=MACRO -P HashSources.cmake
# Writes a header that defines NAME as the hash of every source file below the folders, and leaves it alone if it does.
string(REPLACE "," ";" FOLDERS "${FOLDERS}")
set(all "")
foreach(folder ${FOLDERS})
  file(GLOB_RECURSE files RELATIVE ${folder} ${folder}/*.h ${folder}/*.cpp ${folder}/*.td)
  list(SORT files)
  foreach(file ${files})
    file(SHA256 ${folder}/${file} hash)
    string(APPEND all "${file} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${all}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define ${NAME} \"${hash}\"\n")
