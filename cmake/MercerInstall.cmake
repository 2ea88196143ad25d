# `cmake --install`: the program, libmercer.a and libmercer.so, the public headers, and files for
# find_package(mercer) and pkg-config, so that another project can use mercer (docs/embedding.md).
# tests/install does just that.
include(CMakePackageConfigHelpers)

set(libraries mercer_archive)
if(TARGET mercer_shared)
  list(APPEND libraries mercer_shared)
endif()
install(TARGETS ${libraries} EXPORT mercerTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET mercer_cli)
  install(TARGETS mercer_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Public is what mercer/mercer.hpp reaches, and the C header.
set(install_headers [[
  cmake_policy(SET CMP0057 NEW)  # IN_LIST
  set(found mercer/c/mercer.h)
  set(waiting mercer/mercer.hpp)
  while(waiting)
    list(POP_FRONT waiting header)
    list(APPEND found ${header})
    file(STRINGS "@PROJECT_SOURCE_DIR@/${header}" lines REGEX "^#include \"mercer/")
    foreach(line ${lines})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" next "${line}")
      if(NOT next IN_LIST found AND NOT next IN_LIST waiting)
        list(APPEND waiting ${next})
      endif()
    endforeach()
  endwhile()
  foreach(header ${found})
    get_filename_component(folder ${header} DIRECTORY)
    file(INSTALL "@PROJECT_SOURCE_DIR@/${header}"
      DESTINATION "${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_INCLUDEDIR@/${folder}")
  endforeach()
]])
string(CONFIGURE "${install_headers}" install_headers @ONLY)
install(CODE "${install_headers}")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mercer)
install(EXPORT mercerTargets NAMESPACE mercer:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/mercerConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/mercerConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/mercerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mercerConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/mercerConfigVersion.cmake DESTINATION ${package_folder})

file(RELATIVE_PATH MERCER_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/mercer.pc.in ${CMAKE_CURRENT_BINARY_DIR}/mercer.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mercer.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
