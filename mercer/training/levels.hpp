// Levels of rows that gradients are taken on, and when one of them has done what it can for the
// next.
//   Nested random rows N_0 < N_1 < ... < N. With F_l the information of N_l rows, r = N_{l+1} / N_l
//   and p parameters, the maximum of the next level is away by N(0, F_l^-1 - F_{l+1}^-1), because
//   the one of fewer rows is the one of more rows and independent noise. Going there gains
//     1/2 tr(F_{l+1} (F_l^-1 - F_{l+1}^-1)) = p/2 (r - 1)
//   on average on the next level, whatever is done on this one. A gain G = g'F_l^-1 g / 2 that is
//   left on this level is r G on the next. So a level is left when r G <= p/2 (r - 1): what it
//   leaves is no more than what the next one has to find anyway.
#pragma once

#include "mercer/training/training.hpp"

namespace mercer::training {

class Levels {
 public:
  explicit Levels(const TrainingChoice& choice);

  std::size_t size() const { return rows_.size(); }
  Index rows(std::size_t level) const { return rows_[level]; }
  bool last(std::size_t level) const { return level + 1 == rows_.size(); }
  /// What a product with the rows of a level costs, over that of one with all rows.
  double share(std::size_t level) const;
  /// Of learning on all levels, by the pairs of rows; `here` is of this level.
  double fraction(std::size_t level, double here) const;
  /// The gain that may be left on a level for the next; 0 on the last.
  double gain_to_leave(std::size_t level, Index parameters) const;
  /// What there is to gain on r times the rows of a level that `left` remained on.
  static double gain_on_more(double left, double r, Index parameters);

 private:
  std::vector<Index> rows_;
};

/// Gradients on a level before the last, at most.
inline constexpr int kMostOnLevel = 4;
/// A gain in log likelihood below which the posterior of theta does not care.
inline constexpr double kNoGain = 0.1;

}  // namespace mercer::training
