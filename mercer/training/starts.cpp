#include "mercer/training/starts.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/optim/axes.hpp"

namespace mercer::training {
namespace {

// Evaluations on more rows that knowing the Hessian of fewer saves.
constexpr double kSavedEvaluations = 8;
// Random starts climb on this part of the rows, but not on fewer than this.
constexpr Index kPart = 3, kFewestRows = 200;
// Of the log evidence: a random start that promises less beyond the best is not pursued.
constexpr double kWorthTrying = 0.1;
// What Newton's step promises may be too little by this factor.
constexpr double kDoubt = 2;
// Longest step of Newton's method along an axis, in log parameters.
constexpr double kLongestStep = 1;

class Starts {
 public:
  Starts(Search& search, const inference::Observations& rows, double share)
      : search_(search),
        rows_(rows),
        few_(part_of(search, rows)),
        entries_(Search::entries(rows)),
        share_(share) {}
  optim::MinimizeResult best();

 private:
  static inference::Observations part_of(const Search& search, const inference::Observations& rows);
  bool in_part() const { return few_.size() < rows_.size(); }
  optim::MinimizeResult climb(const inference::Observations& rows, const Vector& start,
                              const char* stage, Hint hint = {});
  void try_random(int index);
  bool promises_more(const optim::MinimizeResult& candidate, const Matrix& hessian) const;
  void finish();

  Search& search_;
  const inference::Observations& rows_;
  inference::Observations few_;
  double entries_;
  double share_;
  double coarse_ = 0;
  optim::MinimizeResult best_;
};

inference::Observations Starts::part_of(const Search& search, const inference::Observations& rows) {
  const Index few = std::max(kFewestRows, rows.size() / kPart);
  return 2 * few <= rows.size() ? search.rows(few) : rows;
}

optim::MinimizeResult Starts::climb(const inference::Observations& rows, const Vector& start,
                                    const char* stage, Hint hint) {
  hint.gain_left = coarse_;
  return search_.climb(rows, start, stage, hint);
}

// The quadratic model at the candidate: does it lead to more than the best has, and elsewhere?
bool Starts::promises_more(const optim::MinimizeResult& candidate, const Matrix& hessian) const {
  Vector g = candidate.gradient;
  for (Index i = 0; i < g.size(); ++i)
    if (search_.box().blocks(i, candidate.theta(i), -g(i))) g(i) = 0;
  const auto axes = optim::positive_axes(hessian, g, kLongestStep);
  const Vector step = axes.slope.cwiseQuotient(axes.curvature);
  const double gain = 0.5 * step.dot(axes.slope);
  const double ahead = entries_ * (best_.value - (candidate.value - kDoubt * gain));
  // Where the step leads, seen from the best: log evidence that lies between the two.
  const Vector apart = axes.directions.transpose() * (candidate.theta - best_.theta) - step;
  const double between = 0.5 * entries_ * apart.dot(axes.curvature.cwiseProduct(apart));
  return ahead > kWorthTrying && between > kDoubt * entries_ * gain;
}

void Starts::try_random(int index) {
  const Vector start = random_start(search_.start(), search_.box(), search_.seed(), index);
  auto found = climb(few_, start, in_part() ? "learn (start)" : "learn");
  if (!std::isfinite(found.value)) return;
  if (in_part()) {
    auto candidate = search_.evaluate(rows_, found.theta);
    if (!std::isfinite(candidate.value)) return;
    const Matrix hessian = search_.hessian(few_, found.theta);
    if (std::isfinite(best_.value) && hessian.size() > 0 && !promises_more(candidate, hessian))
      return;
    found = climb(rows_, candidate.theta, "learn",
                  {.hessian = hessian,
                   .steps_taken = found.iterations,
                   .value = candidate.value,
                   .gradient = candidate.gradient});
  }
  if (!(found.value >= best_.value)) best_ = std::move(found);
}

// Newton's steps from the best.
void Starts::finish() {
  const int limit = search_.exact_steps();
  if (best_.iterations >= limit || best_.stop == StopReason::iteration_limit) return;
  Hint hint{.hessian = search_.hessian(few_, best_.theta),
            .steps_taken = best_.iterations,
            .value = best_.value,
            .gradient = best_.gradient};
  auto end = search_.climb(rows_, best_.theta, "learn", hint);
  if (!(end.value > best_.value)) best_ = std::move(end);
}

optim::MinimizeResult Starts::best() {
  const int starts = 1 + search_.options().restarts;
  const Vector first = search_.box().inside(search_.start().log_parameters());
  const bool ends_by_newton = hessian_pays(few_.size(), rows_.size(), first.size());
  coarse_ = ends_by_newton ? search_.rules().coarse_gain : 0;
  // Of the time of all starts: about that of the first, and of all before the end.
  const double of_first = in_part() ? 0.6 : 1.0 / starts, before_end = ends_by_newton ? 0.9 : 1.0;
  search_.part(0, share_ * of_first * before_end);
  best_ = climb(rows_, first, "learn");
  for (int s = 1; s < starts; ++s) {
    const double each = (1 - of_first) / (starts - 1), begin = of_first + (s - 1) * each;
    search_.part(share_ * before_end * begin, share_ * before_end * (begin + each));
    try_random(s);
  }
  search_.part(share_ * before_end, share_);
  if (ends_by_newton && std::isfinite(best_.value)) finish();
  search_.report.stop = best_.stop;
  return std::move(best_);
}

}  // namespace

bool hessian_pays(Index few, Index more, Index parameters) {
  const double growth = static_cast<double>(more) / static_cast<double>(few);
  return static_cast<double>(parameters) <= kSavedEvaluations * growth * growth * growth;
}

optim::MinimizeResult best_of_starts(Search& search, const inference::Observations& rows,
                                     double share) {
  return Starts(search, rows, share).best();
}

}  // namespace mercer::training
