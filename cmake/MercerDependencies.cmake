# Every outside library in one place; docs/dependencies.md says why each is here.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(FastFloat REQUIRED)
find_package(ZLIB REQUIRED)
find_package(hwy REQUIRED)
find_package(Threads REQUIRED)

# OpenBLAS (BLAS and LAPACK in one library). mercer runs it on one thread and parallelises over
# its own fixed tiles, so that results do not depend on the number of threads.
find_library(MERCER_OPENBLAS openblas PATH_SUFFIXES openblas-openmp REQUIRED)
find_path(MERCER_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-openmp x86_64-linux-gnu REQUIRED)
find_path(MERCER_RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(MERCER_BOOST_INCLUDE boost/math/distributions/normal.hpp REQUIRED)
find_path(MERCER_NANOFLANN_INCLUDE nanoflann.hpp REQUIRED)

if(MERCER_CLI)
  find_package(CLI11 REQUIRED)
endif()
if(MERCER_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endif()
if(MERCER_BENCH)
  find_package(benchmark REQUIRED)
endif()
