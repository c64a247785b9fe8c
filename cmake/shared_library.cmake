# libcandor: what include/candor/candor.h declares, and nothing else, as a shared library. Its list of symbols is read off
# the header.
set(header ${CMAKE_SOURCE_DIR}/include/candor/candor.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
file(STRINGS ${header} declarations REGEX "^CANDOR_API ")
set(symbols "")
foreach(declaration IN LISTS declarations)
  string(REGEX MATCH "(candor_[a-z_]+)\\(" _ "${declaration}")
  string(APPEND symbols "    ${CMAKE_MATCH_1};\n")
endforeach()
set(map ${CMAKE_BINARY_DIR}/libcandor.map)
file(CONFIGURE OUTPUT ${map} CONTENT "CANDOR_0 {\n  global:\n${symbols}  local:\n    *;\n};\n" @ONLY)

add_library(candor_shared SHARED ${CMAKE_SOURCE_DIR}/cmake/nothing.c)
target_include_directories(candor_shared PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
target_link_libraries(candor_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,candor_capi>)
target_link_options(candor_shared PRIVATE -Wl,--version-script=${map} -Wl,--gc-sections)
set_target_properties(candor_shared PROPERTIES OUTPUT_NAME candor VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${map}
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
