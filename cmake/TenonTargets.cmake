# SPDX-License-Identifier: Apache-2.0
# How a folder becomes a library, and how LLVM gets into the build.

# The exported MLIR targets carry libLLVM.so in their link interface; linking it beside the static archives gives two
# copies of LLVM's globals and a crash at start-up. Replace it by the static components, once, for every MLIR target.
llvm_map_components_to_libnames(TENON_LLVM_COMPONENTS
  core support orcjit jitlink executionengine native x86codegen x86asmparser x86desc x86info
  nvptxcodegen nvptxdesc nvptxinfo passes target transformutils asmparser bitwriter)
foreach(target ${MLIR_EXPORTED_TARGETS})
  if(TARGET ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(REMOVE_ITEM links LLVM)
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
    endif()
  endif()
endforeach()
# Every MLIR library depends on MLIRSupport: whatever it brings along comes last on the link line.
set_property(TARGET MLIRSupport APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${TENON_LLVM_COMPONENTS})

add_compile_options(-Wall -Wextra -Wno-unused-parameter -ffp-contract=off)
# Source lines in errors and remarks are told from the root of the repository; they are part of cache keys too.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
add_link_options(-fuse-ld=lld-19 LINKER:--build-id=sha1,--as-needed) # the build id is part of the cache key: jit/BuildId.h
if(TENON_SANITIZE)
  # LLVM's classes have no vtable information to check against. The check of a function pointer reads the words in front
  # of the function, and in front of a compiled kernel there may be no memory.
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined
    -fno-sanitize=vptr,function)
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()

# The MLIR headers cost about ten seconds a file: precompiled once, shared by every target that says MLIR.
add_library(tenonMlirHeaders OBJECT ${PROJECT_SOURCE_DIR}/cmake/MlirHeaders.cpp)
target_include_directories(tenonMlirHeaders SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_precompile_headers(tenonMlirHeaders PRIVATE ${PROJECT_SOURCE_DIR}/cmake/MlirHeaders.h)

# tenon_use_mlir(name [headers]): MLIR's headers, precompiled by the target `headers`, tenonMlirHeaders unless told.
function(tenon_use_mlir name)
  set(headers tenonMlirHeaders)
  if(ARGC GREATER 1)
    set(headers ${ARGV1})
  endif()
  target_include_directories(${name} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${name} PRIVATE ${LLVM_DEFINITIONS})
  target_precompile_headers(${name} REUSE_FROM ${headers})
  if(TARGET TenonTileDialectIncGen)
    add_dependencies(${name} TenonTileDialectIncGen)
  endif()
endfunction()

# tenon_library(name [MLIR] SOURCES ... [LINKS ...]): one folder of tenon/ as a static library.
function(tenon_library name)
  cmake_parse_arguments(arg "MLIR" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_LINKS})
  if(arg_MLIR)
    tenon_use_mlir(${name})
  endif()
endfunction()

# A precompiled header is shared among targets with the same flags. Executables would be compiled -fPIE; it is not.
function(tenon_compile_as_library name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
endfunction()

# tenon_executable(name [MLIR] SOURCES ... [LINKS ...]): a program.
function(tenon_executable name)
  cmake_parse_arguments(arg "MLIR" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  if(arg_MLIR)
    tenon_use_mlir(${name})
    tenon_compile_as_library(${name})
  endif()
endfunction()

# What tests include, precompiled: with MLIR's headers and without. Optimising a test takes longer than running it.
set(TENON_TEST_OPTIONS -O0)
function(tenon_test_headers name header)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/TestHeaders.cpp)
  target_link_libraries(${name} PRIVATE GTest::gtest)
  target_compile_options(${name} PRIVATE ${TENON_TEST_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
endfunction()
if(TENON_BUILD_TESTS)
  find_package(GTest REQUIRED)
  tenon_test_headers(tenonTestHeaders TestHeaders.h)
  tenon_test_headers(tenonMlirTestHeaders MlirTestHeaders.h)
  target_include_directories(tenonMlirTestHeaders SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(tenonMlirTestHeaders PRIVATE ${LLVM_DEFINITIONS})
endif()

# tenon_test(name [MLIR] [OPTIMISED] SOURCES ... [LINKS ...]): a GoogleTest binary registered with ctest. OPTIMISED: what
# it computes itself takes long, or it has flags of its own.
function(tenon_test name)
  cmake_parse_arguments(arg "MLIR;OPTIMISED" "" "SOURCES;LINKS" ${ARGN})
  set(mlir)
  if(arg_MLIR AND arg_OPTIMISED)
    set(mlir MLIR)
  endif()
  tenon_executable(${name} ${mlir} SOURCES ${arg_SOURCES} LINKS ${arg_LINKS} GTest::gtest_main)
  if(NOT arg_OPTIMISED)
    target_compile_options(${name} PRIVATE ${TENON_TEST_OPTIONS})
    tenon_compile_as_library(${name})
    if(arg_MLIR)
      tenon_use_mlir(${name} tenonMlirTestHeaders)
    else()
      target_precompile_headers(${name} REUSE_FROM tenonTestHeaders)
    endif()
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "TENON_CACHE_DIR=${PROJECT_BINARY_DIR}/test-cache")
endfunction()

# tenon_dialect_reference(dialect source.td [other.td ...]): its op reference, from the descriptions in the .td files.
# `ninja tenon-doc` writes them all, as build/docs/<dialect>-dialect.md.
add_custom_target(tenon-doc)
function(tenon_dialect_reference dialect source)
  set(page ${PROJECT_BINARY_DIR}/docs/${dialect}-dialect.md)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} -gen-dialect-doc -dialect=${dialect} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS}
            ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${page}
    DEPENDS ${source} ${ARGN}
    VERBATIM)
  add_custom_target(tenon-doc-${dialect} DEPENDS ${page})
  add_dependencies(tenon-doc tenon-doc-${dialect})
endfunction()
