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
  /// Rows [first, first + out.rows()) of what fill_normal, fill_rademacher write into a matrix of
  /// `rows` rows. The stream ends where it does after the whole matrix, so that processes which
  /// hold some rows each draw the numbers of one process that holds all.
  void fill_normal_rows(MatrixView out, Index first, Index rows);
  void fill_rademacher_rows(MatrixView out, Index first, Index rows);
  /// A random permutation of 0 .. n - 1.
  std::vector<Index> permutation(Index n);

 private:
  void refill();
  /// Numbers of 32 bits taken from the stream so far, and to go on after so many.
  std::uint64_t position() const { return 4 * counter_ - 4 + static_cast<std::uint64_t>(used_); }
  void move_to(std::uint64_t position);
  void skip_normals(Index count);

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
