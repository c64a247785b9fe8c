# One static library and one test program for each line of scripts/deps.txt; links follow that file.
# Sources are the .cpp files of the module's folder; X_test.cpp files make the test program.

# What modules use from outside the project.
set(CANDOR_EXTERNAL_platform Threads::Threads)
set(CANDOR_EXTERNAL_comm candor_mpi_image ${CMAKE_DL_LIBS})
set(CANDOR_EXTERNAL_backend/cuda candor_cuda_images fmt ${CMAKE_DL_LIBS})
set(CANDOR_EXTERNAL_backend/cuda/emulation boost_context fmt)
set(CANDOR_EXTERNAL_sandbox candor_helper_image fmt Threads::Threads)
set(CANDOR_EXTERNAL_image fmt)
set(CANDOR_EXTERNAL_text candor_bridge crypto utf8proc)
set(CANDOR_EXTERNAL_constrain candor_bridge)
set(CANDOR_EXTERNAL_backend/all fmt)
set(CANDOR_EXTERNAL_obs fmt)
set(CANDOR_EXTERNAL_formats fmt)
set(CANDOR_EXTERNAL_quantize fmt)
set(CANDOR_EXTERNAL_prefix_store fmt)
set(CANDOR_EXTERNAL_engine/disk fmt Threads::Threads)
set(CANDOR_EXTERNAL_vision fmt)
set(CANDOR_EXTERNAL_merge fmt)
set(CANDOR_EXTERNAL_receipt fmt crypto)
set(CANDOR_EXTERNAL_net fmt Threads::Threads ssl crypto)
set(CANDOR_EXTERNAL_hub fmt)
set(CANDOR_EXTERNAL_hub/pull fmt crypto)
set(CANDOR_EXTERNAL_base crypto fmt)
set(CANDOR_EXTERNAL_serve/http fmt Threads::Threads ssl crypto)
set(CANDOR_EXTERNAL_serve/core fmt crypto)
set(CANDOR_EXTERNAL_serve/openai fmt crypto)
set(CANDOR_EXTERNAL_serve/llama_cpp fmt)
set(CANDOR_EXTERNAL_serve/anthropic fmt)
set(CANDOR_EXTERNAL_serve/responses fmt crypto)
set(CANDOR_EXTERNAL_serve/ollama fmt)
set(CANDOR_EXTERNAL_serve/reading fmt)
set(CANDOR_EXTERNAL_serve/batch fmt)
set(CANDOR_EXTERNAL_serve/page fmt candor_page_files)
set(CANDOR_EXTERNAL_serve fmt)
set(CANDOR_EXTERNAL_capi fmt)

# The name stands for the library of this project, not for the system's.
add_library(fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt.cpp)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  candor_compile_quickly(fmt)
endif()

# Debian has GoogleTest's library for its own architecture, and the sources for all.
if(CANDOR_TESTS AND CMAKE_CROSSCOMPILING)
  add_subdirectory(/usr/src/googletest/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  target_compile_options(gtest PRIVATE -w)
endif()

# Of every module. Who finds the installed library sees include/ alone.
set(CANDOR_INCLUDES "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>" "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>"
                    $<INSTALL_INTERFACE:include>)

function(candor_target_name module out)
  string(REPLACE "/" "_" name "${module}")
  set(${out} "candor_${name}" PARENT_SCOPE)
endfunction()

function(candor_glob folder nested out_sources out_tests)
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${folder}/*.cpp)
  foreach(other IN LISTS nested)
    list(FILTER all EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/src/${other}/")
  endforeach()
  set(tests ${all})
  list(FILTER all EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(${out_sources} ${all} PARENT_SCOPE)
  set(${out_tests} ${tests} PARENT_SCOPE)
endfunction()

# The one source that knows the project's place: all others come from the build cache in any clone.
if(CANDOR_TESTS)
  add_library(candor_test_data STATIC ${CMAKE_SOURCE_DIR}/tests/support/shared_data.cpp)
  target_include_directories(candor_test_data PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(candor_test_data PRIVATE CANDOR_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             CANDOR_GOLDENS_DIR="${CMAKE_BINARY_DIR}/tests/goldens")
endif()

# What tests measure and remember of the machine is not the user's, and no prompt of one is known to the next. Behind the
# property ENVIRONMENT.
set(CANDOR_TEST_ENVIRONMENT XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/test-cache
                            ENVIRONMENT_MODIFICATION CANDOR_NO_DISK_CACHE=set:true)

# Programs where input meets memory: `scripts/test.sh` runs them under sanitizers (label "input"), and the others without.
# Each is built with the target candor_input_tests or candor_other_tests.
set(CANDOR_INPUT_TESTS capi net hub_pull formats image prefix_store text constrain sandbox kv sched serve_http serve_anthropic serve_batch serve_core serve
                       hub_folders hub_tokenizers json_schema loader server kernels)
if(CANDOR_TESTS)
  add_custom_target(candor_input_tests)
  add_custom_target(candor_other_tests)
endif()

# labels: of the tests of `target`.
function(candor_sort_test target labels)
  string(REGEX REPLACE "^candor_|_test$" "" name ${target})
  set(${labels} "" PARENT_SCOPE)
  if(name IN_LIST CANDOR_INPUT_TESTS)
    add_dependencies(candor_input_tests ${target})
    set(${labels} input PARENT_SCOPE)
    return()
  endif()
  add_dependencies(candor_other_tests ${target})
endfunction()

# Tests of a program (GTest's filter) that look at every number or every byte of much: scripts/nightly.sh runs them, and
# changes do not wait for them.
set(CANDOR_NIGHTLY_accuracy Pocket.every_weight_format_on_the_cpu_stays_within_the_bounds_of_the_contract)
set(CANDOR_NIGHTLY_formats json_text.small_values_in_great_numbers_are_refused_before_they_fill_the_memory:safetensors.a_header_of_20_mb_takes_neither_seconds_nor_memory)
set(CANDOR_NIGHTLY_prefix_store prefix_store.killed_at_five_hundred_moments_it_gives_no_wrong_block)
set(CANDOR_NIGHTLY_loader damaged_model.with_a_bit_flipped_gets_the_same_verdict_every_time)
set(CANDOR_NIGHTLY_end_to_end damage.a_model_with_a_flipped_bit_is_refused_or_generates_a_token)

# Programs whose tests compute much themselves.
set(CANDOR_BUSY_TESTS sample conformance)

# Each test of `target` that the filter names runs by itself.
function(candor_discover_tests target filter labels)
  gtest_discover_tests(${target} TEST_FILTER "${filter}" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 600 ENVIRONMENT ${CANDOR_TEST_ENVIRONMENT} LABELS "${labels}")
endfunction()

# RUN_WHOLE: the program is one test, where its tests share what takes long to make. Else each test runs by itself.
function(candor_add_test target)
  cmake_parse_arguments(PARSE_ARGV 1 test "RUN_WHOLE" "" "")
  if(NOT CMAKE_CROSSCOMPILING)
    find_package(GTest REQUIRED)
  endif()
  include(GoogleTest)
  add_executable(${target} ${test_UNPARSED_ARGUMENTS})
  candor_sanitize(${target})
  string(REGEX REPLACE "^candor_|_test$" "" name ${target})
  if(name IN_LIST CANDOR_BUSY_TESTS)
    candor_compile_quickly(${target})
  else()
    target_compile_options(${target} PRIVATE -O0)  # -O1 takes half as long again
  endif()
  candor_compile_together(${target})
  if(CANDOR_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)  # what is tested has these checks
  endif()
  target_link_libraries(${target} PRIVATE GTest::gtest_main candor_test_data)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  candor_sort_test(${target} labels)
  if(test_RUN_WHOLE)
    add_test(NAME ${name}.all COMMAND ${target})
    set_tests_properties(${name}.all PROPERTIES TIMEOUT 600 ENVIRONMENT ${CANDOR_TEST_ENVIRONMENT} LABELS "${labels}")
  elseif(DEFINED CANDOR_NIGHTLY_${name})
    candor_discover_tests(${target} "${CANDOR_NIGHTLY_${name}}" nightly)
    candor_discover_tests(${target} "-${CANDOR_NIGHTLY_${name}}" "${labels}")
  else()
    candor_discover_tests(${target} "*" "${labels}")
  endif()
endfunction()

# What gcc takes longest for in a sanitized kernel table: checks of scopes, checks written out where they stand (they
# are calls here), and checks of arithmetic, which is in intrinsics but for the portable table (compiled unoptimised; with
# CANDOR_SANITIZE_ONLY its arithmetic is not checked, since tests then wait for it). Memory accesses stay checked in all
# tables.
function(candor_lighten_tables sources)
  list(FILTER sources INCLUDE REGEX "/isa/.*\\.cpp$")
  foreach(source IN LISTS sources)
    set(options -fno-sanitize-address-use-after-scope --param=asan-instrumentation-with-call-threshold=0)
    if(source MATCHES "/isa/portable/" AND NOT CANDOR_SANITIZE_ONLY)
      list(APPEND options -O0)
    else()
      list(APPEND options -fno-sanitize=undefined)
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options}")
  endforeach()
endfunction()

# The calls of above, for vectors: most of what dev's tests did.
function(candor_quicken_vector_checks target)
  add_library(candor_vector_checks OBJECT ${CMAKE_SOURCE_DIR}/cmake/vector_checks.c)
  target_compile_options(candor_vector_checks PRIVATE -O2 -fno-sanitize=all)
  target_link_libraries(${target} PUBLIC $<TARGET_OBJECTS:candor_vector_checks>)
endfunction()

# Kernels for GPUs, as C++ for the emulation, which has the words that they are written in. Each is compiled by itself, as
# nvcc does.
function(candor_add_host_kernels list)
  file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/kernels/*.cu)
  set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX SKIP_UNITY_BUILD_INCLUSION ON
                              COMPILE_OPTIONS "-x;c++;-include;backend/cuda/emulation/language_host.h")
  set(${list} ${${list}} ${kernels} PARENT_SCOPE)
endfunction()

# Beast and JSON templates cost minutes at -O3, and none of this is where time goes.
set(CANDOR_QUICK_MODULES "^(serve|net|capi|hub|model|receipt|formats|sandbox|merge|prefix_store|engine/(open|request|disk)|obs)")
# Where the time of sanitized tests goes: all other modules are compiled quickly there.
set(CANDOR_HOT_MODULES "^(kernels|quantize|backend/reference|backend/cuda/emulation|text|constrain|base|tensor)$")

# sanitizers: those of the module. is_dev: whether it is compiled as the dev preset does.
function(candor_sanitizers_of module sanitizers is_dev)
  string(COMPARE EQUAL "${CMAKE_BUILD_TYPE}" Debug debug)
  set(${is_dev} ${debug} PARENT_SCOPE)
  set(${sanitizers} "${CANDOR_SANITIZE}" PARENT_SCOPE)
  if(CANDOR_SANITIZE_ONLY AND module MATCHES "${CANDOR_SANITIZE_ONLY}")
    set(${is_dev} TRUE PARENT_SCOPE)
  elseif(CANDOR_SANITIZE_ONLY)
    set(${sanitizers} "" PARENT_SCOPE)
  endif()
endfunction()

function(candor_add_module module deps nested)
  candor_sanitizers_of(${module} sanitizers is_dev)
  set(folder ${CMAKE_SOURCE_DIR}/src/${module})
  candor_glob(${folder} "${nested}" sources tests)
  candor_target_name(${module} target)
  set(links "")
  if(NOT CANDOR_CUDA AND NOT module STREQUAL "backend/cuda/emulation")
    list(REMOVE_ITEM deps backend/cuda)  # tests alone build it then
  endif()
  foreach(dep IN LISTS deps)
    candor_target_name(${dep} dep_target)
    list(APPEND links ${dep_target})
  endforeach()
  list(APPEND links ${CANDOR_EXTERNAL_${module}})
  if(module STREQUAL "kernels")
    candor_leave_out_isas(sources)
    candor_leave_out_emulations(tests)
  endif()
  if(module STREQUAL "backend/cuda/emulation")
    candor_add_host_kernels(sources)
  endif()
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${CANDOR_INCLUDES})
    target_link_libraries(${target} PUBLIC ${links})
    if(sanitizers)
      candor_sanitize(${target})
    endif()
    if(CANDOR_CUDA AND module STREQUAL "backend/all")
      target_compile_definitions(${target} PRIVATE CANDOR_HAS_CUDA)
    endif()
    if(NOT module STREQUAL "kernels")
      target_compile_options(${target} PRIVATE -Wconversion)
      candor_compile_together(${target})
    endif()
    if(module MATCHES "${CANDOR_QUICK_MODULES}" OR (is_dev AND NOT module MATCHES "${CANDOR_HOT_MODULES}"))
      candor_compile_quickly(${target})
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -Wno-mismatched-new-delete)  # gcc 12, falsely, at Asio's coroutine frames
        if(is_dev AND module MATCHES "^(net|serve)")  # 43 % of what Asio takes; ASan sees pointers that are null
          target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,object-size,vptr)
        endif()
      elseif(sanitizers MATCHES "undefined")
        target_compile_options(${target} PRIVATE -fno-sanitize=function)  # clang 14 cannot write it for coroutines
      endif()
    endif()
    # The portable kernels are the definition, not the speed: -O3 takes five times as long to compile them.
    set(portable ${sources})
    list(FILTER portable INCLUDE REGEX "/isa/portable/")
    set_source_files_properties(${portable} PROPERTIES COMPILE_OPTIONS -O1)
    if(sanitizers MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      candor_lighten_tables("${sources}")
      if(module STREQUAL "kernels" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        candor_quicken_vector_checks(${target})
      endif()
    endif()
    # No input of a fuzz target is aimed at the kernels, and clang takes many minutes for them with everything checked.
    if(CANDOR_FUZZ AND module STREQUAL "kernels")
      target_compile_options(${target} PRIVATE -O0 -fno-sanitize=all)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CANDOR_INCLUDES})
    target_link_libraries(${target} INTERFACE ${links})
  endif()
  if(CANDOR_TESTS AND tests)
    # Bodies that stand in one anonymous namespace for each source, and take long.
    set(bodies ${tests})
    list(FILTER bodies INCLUDE REGEX "/isa/")
    set_source_files_properties(${bodies} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    candor_add_test(${target}_test ${tests})
    target_link_libraries(${target}_test PRIVATE ${target})
  endif()
endfunction()

function(candor_add_modules deps_file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${deps_file})
  file(STRINGS ${deps_file} lines REGEX "^[a-z]")
  set(modules "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ":.*" "" module "${line}")
    list(APPEND modules ${module})
  endforeach()
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([^:]+): *(.*)$" _ "${line}")
    set(module ${CMAKE_MATCH_1})
    string(REPLACE " " ";" deps "${CMAKE_MATCH_2}")
    if(module MATCHES "^apps/")
      continue()
    endif()
    set(nested ${modules})
    list(FILTER nested INCLUDE REGEX "^${module}/")
    candor_add_module(${module} "${deps}" "${nested}")
  endforeach()
endfunction()
