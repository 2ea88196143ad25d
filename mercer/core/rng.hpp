// Counter-based random numbers (Philox 4x32-10 from Random123). A stream is named by a seed, a
// purpose and an index, so that threads, order of evaluation and resumption do not change draws.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer {

class Rng {
 public:
  /// Rng(seed, "split"), Rng(seed, "probe", 3): independent streams.
  explicit Rng(std::uint64_t seed, std::string_view purpose = "", std::uint64_t index = 0);

  std::uint32_t bits32();
  std::uint64_t bits64();
  /// Uniform on (0, 1): never exactly 0 or 1.
  double uniform();
  double normal();
  /// -1 or +1.
  double sign();
  /// Uniform on {0, ..., n - 1}, without modulo bias.
  Index index(Index n);

  void fill_normal(MatrixView out);
  void fill_uniform(MatrixView out);
  void fill_rademacher(MatrixView out);
  /// A random permutation of 0 .. n - 1.
  std::vector<Index> permutation(Index n);

 private:
  void refill();

  std::uint64_t key_;
  std::uint64_t index_;
  std::uint64_t counter_ = 0;
  std::uint32_t block_[4] = {};
  int used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

}  // namespace mercer
MERCER_API_END
