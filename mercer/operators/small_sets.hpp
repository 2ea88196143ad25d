// Kernel values and derivatives over small sets of points, one set after the other: for work inside
// the tasks of a parallel loop. One object per task: the kernel is prepared once for all its sets,
// and their memory is used again.
#pragma once

#include <memory>

#include "mercer/kernels/kernel.hpp"

namespace mercer::operators {

class SmallSets {
 public:
  explicit SmallSets(const kernels::Kernel& kernel);
  ~SmallSets();

  /// From now on this set, n x d.
  void load(ConstMatrixView x);
  /// out = K(x, x), in double.
  void matrix(MatrixView out);
  /// gradient(p) = u' (dK(x, x)/dtheta_p) v for every log parameter, in double.
  void gradient(ConstVectorView u, ConstVectorView v, VectorView gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::operators
