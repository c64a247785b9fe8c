# Compiler, cache and linker flags for every target. The numerics contract (docs/numerics.md, rule 1) needs -ffp-contract=off.
find_program(CANDOR_CCACHE ccache)
if(CANDOR_CCACHE AND NOT DEFINED ENV{CANDOR_NO_CCACHE})
  # Paths relative to the project: a second clone is served by the first one's results.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CANDOR_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()
if(NOT CMAKE_CROSSCOMPILING)
  find_program(CANDOR_MOLD mold)
endif()
if(CANDOR_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_package(Threads REQUIRED)

add_compile_options(-Wall -Wextra -Wshadow -Werror -ffp-contract=off -fno-math-errno)
# For libcandor.so; hidden and not replaceable, code is what it is in a program.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options(-fvisibility=hidden -fno-semantic-interposition)
# __FILE__ is the same in every clone; the compiler cache gives the compiler paths from the build folder.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=../=)
if(CMAKE_CROSSCOMPILING)
  add_compile_options(-fsigned-char)  # as on x86-64, where the project is tested most
  add_compile_options(-Wno-maybe-uninitialized)  # gcc 12 for Arm sees it in the standard library's own strings
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wthread-safety -Wno-unused-command-line-argument -Wno-shadow)  # gcc says what shadows
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CANDOR_SANITIZERS -fsanitize=${CANDOR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
if(CANDOR_SANITIZE)
  add_link_options(-fsanitize=${CANDOR_SANITIZE})
endif()
if(CANDOR_SANITIZE AND NOT CANDOR_SANITIZE_ONLY)
  add_compile_options(${CANDOR_SANITIZERS})
  add_compile_definitions(CANDOR_SANITIZED=1)
endif()

# With CANDOR_SANITIZE_ONLY: compiles one target, a module or a program of tests, as the dev preset does.
function(candor_sanitize target)
  if(CANDOR_SANITIZE_ONLY)
    target_compile_options(${target} PRIVATE -O1 -g1 -UNDEBUG ${CANDOR_SANITIZERS})
    target_compile_definitions(${target} PRIVATE CANDOR_SANITIZED=1)
  endif()
endfunction()
if(CANDOR_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-tsan)  # Asio has fences, which the sanitizer does not follow
endif()
if(CANDOR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Command files are compiled often and run briefly. Under sanitizers -O1 takes four times as long as -O0.
function(candor_compile_quickly target)
  get_target_property(definitions ${target} COMPILE_DEFINITIONS)
  if((CANDOR_SANITIZE AND NOT CANDOR_SANITIZE_ONLY) OR "CANDOR_SANITIZED=1" IN_LIST definitions)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# Most of the time goes into headers and what they instantiate: several sources are compiled as one. Names of anonymous
# namespaces are therefore unique in the target. Who works on one file may prefer -DCANDOR_COMPILE_TOGETHER=OFF.
function(candor_compile_together target)
  if(NOT CANDOR_COMPILE_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # fixtures in a source that another one includes
  endif()
endfunction()
