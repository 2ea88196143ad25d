# One target per room. A room may include only the rooms it names in DEPENDS (and what those
# depend on); tests/rooms_test.py checks the #include lines against this.
#
#   mercer_room(krylov SOURCES cg.cpp DEPENDS linalg)        -> library target mercer_krylov
#   mercer_room_test(krylov SOURCES cg_test.cpp DEPENDS ...) -> test program krylov_test

add_library(mercer_flags INTERFACE)
target_compile_options(mercer_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers)  # {.tolerance = 1e-8} leaves the other fields at their defaults
# GCC 12 warns of impossible overlaps inside std::string (GCC bug 105651).
target_compile_options(mercer_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# A unity build includes sources, so GCC takes their unnamed namespaces for those of a header.
target_compile_options(mercer_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
# Public classes have members of Eigen's, which are hidden like all else that is not marked.
target_compile_options(mercer_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-attributes>)
if(MERCER_WARNINGS_AS_ERRORS)
  target_compile_options(mercer_flags INTERFACE -Werror)
endif()

if(MERCER_SANITIZE)
  add_compile_options(-fsanitize=${MERCER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MERCER_SANITIZE})
  # What the address sanitizer finds as well; without these a build takes half the time.
  if(MERCER_SANITIZE MATCHES "address,undefined")
    add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
    # Eigen adds offsets to the null pointer of an empty matrix, and never reads there.
    add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=pointer-overflow>)
  endif()
  if(MERCER_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# Sources of a target are compiled a few at a time as one (CMake's unity build): the headers they
# share are read once. Two sources of a room must therefore not give two things one name, also not
# in unnamed namespaces. docs/building.md says what this gains.
set(MERCER_UNITY_BATCH 10 CACHE STRING "Sources compiled as one; 1 compiles each alone")
function(mercer_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MERCER_UNITY_BATCH})
endfunction()

set_property(GLOBAL PROPERTY MERCER_ROOMS "")

function(mercer_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  add_library(mercer_${name} STATIC ${ROOM_SOURCES})
  add_library(mercer::${name} ALIAS mercer_${name})
  mercer_unity(mercer_${name})
  set_target_properties(mercer_${name} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME mercer_${name})
  target_include_directories(mercer_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(mercer_${name} PUBLIC cxx_std_20)
  target_link_libraries(mercer_${name} PRIVATE $<BUILD_INTERFACE:mercer_flags> ${ROOM_PRIVATE_LIBRARIES})
  target_link_libraries(mercer_${name} PUBLIC ${ROOM_LIBRARIES})
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(mercer_${name} PUBLIC mercer_${room})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MERCER_ROOMS mercer_${name})
endfunction()

function(mercer_room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  # Alone, because it declares a function of linalg as weak.
  set(kernels ${PROJECT_SOURCE_DIR}/tests/testing/machine_kernels.cpp)
  set_source_files_properties(${kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_executable(${name}_test ${TEST_SOURCES} ${kernels})
  mercer_unity(${name}_test)
  target_link_libraries(${name}_test PRIVATE $<BUILD_INTERFACE:mercer_flags> GTest::gtest_main ${TEST_LIBRARIES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  # Tests are full of dense reference algebra: compiling it takes longer than running it.
  target_compile_options(${name}_test PRIVATE -O1)
  foreach(room ${name} ${TEST_DEPENDS})
    if(TARGET mercer_${room})
      target_link_libraries(${name}_test PRIVATE mercer_${room})
    endif()
  endforeach()
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    PROPERTIES TIMEOUT 900 LABELS unit)
endfunction()
