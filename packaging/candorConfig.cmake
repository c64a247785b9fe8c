# find_package(candor) gives the target candor::candor, the C interface (candor/candor.h), and where the library was
# installed from a build, candor::engine, the C++ interface (candor/engine.h).
get_filename_component(_candor_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/candorTargets.cmake")
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  if(NOT TARGET candor_bridge)
    add_library(candor_bridge STATIC IMPORTED)
    set_target_properties(candor_bridge PROPERTIES
      IMPORTED_LOCATION "${_candor_prefix}/@LIBDIR@/candor/libcandor_bridge.a"
      INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
  endif()
  include("${CMAKE_CURRENT_LIST_DIR}/candorTargets.cmake")
elseif(NOT TARGET candor::candor)
  add_library(candor::candor SHARED IMPORTED)
  set_target_properties(candor::candor PROPERTIES
    IMPORTED_LOCATION "${_candor_prefix}/@LIBDIR@/libcandor.so.0"
    IMPORTED_SONAME libcandor.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_candor_prefix}/include")
endif()
set(candor_VERSION @VERSION@)
unset(_candor_prefix)
