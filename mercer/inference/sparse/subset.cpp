// Subset of data: the exact process of m rows, the others left out.
//   Source: Rasmussen & Williams (2006), section 8.3.3.
//   Evidence: that of the m rows alone, so it does not compare with those of all rows.
//   Cost:   m^3 flops an evaluation and 8 m^2 bytes, whatever N, once the rows are chosen.
//   When not: nearly always; with the same base points dtc learns from all rows.
#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {
namespace {

class Subset final : public Inference {
 public:
  explicit Subset(const InferenceSetup& setup)
      : rows_(setup.rows), setup_(setup.sparse), seed_(setup.seed) {
    if (setup_.points.size() > 0)
      throw InvalidArgument(
          "`method=subset` learns from rows of the data and takes no base points from a file");
  }

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    prepare(at);
    return exact_evidence(at, chosen_, ask.gradient);
  }

  // With all its rows as base points dtc is exact.
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    const ObservedCall call(progress);
    const Timer timer;
    prepare(at);
    const BaseFactor base(at.kernel, chosen_.x);
    SparseSums sums(at, base, {});
    sums.add(chosen_);
    const auto solution = finish_posterior(sums);
    auto sparse = std::make_shared<SparsePosterior>();
    sparse->method = "subset";
    auto out = sparse_result(base, solution, std::move(sparse));
    if (request.with_gradient) out.evidence.gradient = exact_evidence(at, chosen_, true).gradient;
    out.build_seconds = timer.seconds();
    return out;
  }

  void renew(const Problem& at) override {
    which_.clear();
    prepare(at);
  }
  Matrix base_points() const override { return chosen_.x; }
  void use_base(Matrix /*points*/) override {
    throw InvalidArgument("`method=subset` learns from rows of the data and takes no base points");
  }
  State save() const override {
    if (which_.empty()) return {};
    Matrix rows(static_cast<Index>(which_.size()), 1);
    for (Index i = 0; i < rows.rows(); ++i)
      rows(i, 0) = static_cast<double>(which_[static_cast<std::size_t>(i)]);
    return {{"rows of the subset", rows}};
  }
  void load(const State& state, const Problem& /*like*/) override {
    const Matrix& rows = saved_array(state, "rows of the subset");
    which_.clear();
    for (Index i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<Index>(rows.data()[i]);
      if (row < 0 || row >= rows_.size())
        throw ModelFileError("the checkpoint is damaged: a row of the subset is not there");
      which_.push_back(row);
    }
    chosen_ = rows_.rows(which_);
  }

 private:
  void prepare(const Problem& at) {
    if (!which_.empty()) return;
    which_ = choose_base_rows(at.kernel, rows_.x, setup_, seed_);
    add_random_rows(base_count(rows_.size(), setup_));
    std::sort(which_.begin(), which_.end());
    chosen_ = rows_.rows(which_);
  }

  // Where the kernel ran out of pivots: rows that it calls known still have something to say.
  void add_random_rows(Index count) {
    std::vector<char> taken(static_cast<std::size_t>(rows_.size()), 0);
    for (const Index row : which_) taken[static_cast<std::size_t>(row)] = 1;
    for (const Index row : Rng(seed_, "rows of a subset").permutation(rows_.size())) {
      if (static_cast<Index>(which_.size()) >= count) return;
      if (taken[static_cast<std::size_t>(row)] == 0) which_.push_back(row);
    }
  }

  const Observations& rows_;
  SparseSetup setup_;
  std::uint64_t seed_;
  std::vector<Index> which_;
  Observations chosen_;
};

EvaluationCost subset_cost(const CostSetting& s) {
  const Index points = std::min(s.rank.value_or(1000), s.n);
  const auto m = static_cast<double>(points), n = static_cast<double>(s.n);
  // The rows are chosen once, by N m kernel values at most.
  return {exact_evidence_bytes(points) + 8 * n * static_cast<double>(s.d) +
              8 * std::min(n * m, 67108864.0),
          exact_evidence_flops(points, true) / s.speed.flops +
              m * m * s.speed.pair_seconds_double * (2 + static_cast<double>(s.parameters) / 2)};
}

}  // namespace

InferenceInfo subset_info() {
  return {.name = "subset",
          .summary = "approximate: exact on m of the rows",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .base = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = subset_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<Subset>(setup);
          }};
}

}  // namespace mercer::inference
