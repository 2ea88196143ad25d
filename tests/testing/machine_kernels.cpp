// Test programs run the BLAS kernels of the machine, as the program mercer does: started anew with
// OPENBLAS_CORETYPE set where OpenBLAS is older than the processor (linalg/blas.hpp). A variable
// that is set from outside (scripts/arithmetics) is left alone.
#include <unistd.h>

#include <cstdlib>

namespace mercer::linalg {
[[gnu::weak]] const char* better_blas_target();  // null in tests of rooms below linalg
}

namespace {

[[gnu::constructor]] void run_the_kernels_of_the_machine(int, char** arguments, char**) {
  if (mercer::linalg::better_blas_target == nullptr) return;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const char* target = mercer::linalg::better_blas_target();
  if (target == nullptr || setenv("OPENBLAS_CORETYPE", target, 1) != 0) return;
  execv("/proc/self/exe", arguments);
}

}  // namespace
