#include "mercer/core/openmp.hpp"

#include <dlfcn.h>

namespace mercer {
namespace {

// Looked up by name, because mercer itself is not linked with OpenMP.
struct OpenMp {
  int (*max_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
};

const OpenMp& openmp() {
  static const OpenMp found = [] {
    OpenMp all;
    all.max_threads =
        reinterpret_cast<decltype(all.max_threads)>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    all.set_num_threads =
        reinterpret_cast<decltype(all.set_num_threads)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    return all.max_threads != nullptr && all.set_num_threads != nullptr ? all : OpenMp{};
  }();
  return found;
}

}  // namespace

SerialOpenMp::SerialOpenMp() {
  if (openmp().max_threads == nullptr) return;
  before_ = openmp().max_threads();
  if (before_ > 1) openmp().set_num_threads(1);
}

SerialOpenMp::~SerialOpenMp() {
  if (before_ > 1) openmp().set_num_threads(before_);
}

}  // namespace mercer
