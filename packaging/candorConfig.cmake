# find_package(candor) gives the target candor::candor: the C interface, include/candor/candor.h.
get_filename_component(_candor_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET candor::candor)
  add_library(candor::candor SHARED IMPORTED)
  set_target_properties(candor::candor PROPERTIES
    IMPORTED_LOCATION "${_candor_prefix}/@LIBDIR@/libcandor.so.0"
    IMPORTED_SONAME libcandor.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_candor_prefix}/include")
endif()
set(candor_VERSION @VERSION@)
unset(_candor_prefix)
