# `cmake --install`: the program, the rooms, their headers, and a package file, so that another
# project can say find_package(mercer) and link mercer::mercer. tests/install does just that.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY MERCER_ROOMS)

# Libraries without a package file of their own are known here by the full path of this machine.
# The installed package names them instead, and mercerConfig.cmake finds them again.
foreach(room ${rooms})
  get_target_property(links ${room} INTERFACE_LINK_LIBRARIES)
  if(NOT links)
    continue()
  endif()
  foreach(pair "MERCER_OPENBLAS|mercer::openblas" "MERCER_LBFGS|mercer::lbfgs")
    string(REPLACE "|" ";" pair ${pair})
    list(GET pair 0 variable)
    list(GET pair 1 name)
    list(TRANSFORM links REPLACE "^${${variable}}$"
      "$<BUILD_INTERFACE:${${variable}}>;$<INSTALL_INTERFACE:$<LINK_ONLY:${name}>>")
  endforeach()
  set_target_properties(${room} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
endforeach()

install(TARGETS mercer ${rooms} EXPORT mercerTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET mercer_cli)
  install(TARGETS mercer_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/mercer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "detail" EXCLUDE PATTERN "simd" EXCLUDE
  PATTERN "*-inl.hpp" EXCLUDE)
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
