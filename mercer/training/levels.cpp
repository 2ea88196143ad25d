#include "mercer/training/levels.hpp"

namespace mercer::training {

Levels::Levels(const TrainingChoice& choice) {
  for (const Index rows : choice.solve_levels)
    if (rows < choice.rows) rows_.push_back(rows);
  rows_.push_back(choice.rows);
}

double Levels::share(std::size_t level) const {
  const double part = static_cast<double>(rows_[level]) / static_cast<double>(rows_.back());
  return part * part;
}

double Levels::fraction(std::size_t level, double here) const {
  double before = 0, total = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    total += share(i);
    if (i < level) before += share(i);
  }
  return (before + here * share(level)) / total;
}

double Levels::gain_to_leave(std::size_t level, Index parameters) const {
  if (last(level)) return 0;
  const double r = static_cast<double>(rows_[level + 1]) / static_cast<double>(rows_[level]);
  return 0.5 * static_cast<double>(parameters) * (1 - 1 / r);
}

double Levels::gain_on_more(double left, double r, Index parameters) {
  return r * left + 0.5 * static_cast<double>(parameters) * (r - 1);
}

}  // namespace mercer::training
