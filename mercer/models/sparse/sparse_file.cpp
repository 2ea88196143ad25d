#include "mercer/models/sparse/sparse_file.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/inference/inference.hpp"
#include "mercer/models/model_parts.hpp"

namespace mercer::models {
namespace {

using inference::SparseFunction;
using inference::SparsePosterior;

nlohmann::json check_json(const ApproximationCheck& check) {
  if (check.rows == 0) return nullptr;
  return {{"rows", check.rows},     {"mean_rms", check.mean_rms}, {"mean_max", check.mean_max},
          {"sd_rms", check.sd_rms}, {"sd_max", check.sd_max},     {"kl", check.kl}};
}

ApproximationCheck check_from(const nlohmann::json& json) {
  ApproximationCheck check;
  if (json.is_null()) return check;
  check.rows = json.at("rows").get<Index>();
  check.mean_rms = json.at("mean_rms").get<double>();
  check.mean_max = json.at("mean_max").get<double>();
  check.sd_rms = json.at("sd_rms").get<double>();
  check.sd_max = json.at("sd_max").get<double>();
  check.kl = json.at("kl").get<double>();
  return check;
}

Matrix as_column(const std::vector<Index>& values) {
  Matrix out(static_cast<Index>(values.size()), 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    out(static_cast<Index>(i)) = static_cast<double>(values[i]);
  return out;
}

std::vector<Index> indices(const Matrix& column, Index most) {
  std::vector<Index> out;
  for (const double value : column.reshaped()) {
    if (!(value >= 0 && value <= static_cast<double>(most)) || value != std::floor(value))
      throw ModelFileError("a block of rows makes no sense");
    out.push_back(static_cast<Index>(value));
  }
  return out;
}

// A partition of all rows.
approximations::Clusters blocks_from(data::ArrayFile& file, Index rows, Index count) {
  approximations::Clusters out;
  out.order = indices(take(file, "block_order", rows, 1), rows - 1);
  out.offsets = indices(take(file, "block_offsets", count + 1, 1), rows);
  auto sorted = out.order;
  std::sort(sorted.begin(), sorted.end());
  bool right = out.offsets.front() == 0 && out.offsets.back() == rows &&
               std::is_sorted(out.offsets.begin(), out.offsets.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    right = right && sorted[i] == static_cast<Index>(i);
  if (!right) throw ModelFileError("the blocks of its rows are no partition");
  return out;
}

// The functions side by side. `m` base points that a belief is about (0: none), q columns of the
// mean.
void write_beliefs(const SparsePosterior& sparse, data::ArrayFile& file) {
  const auto& first = sparse.functions.front();
  const auto count = static_cast<Index>(sparse.functions.size());
  const Index m = first.factor.rows(), q = first.beta.size();
  Matrix factor(m, m * count), weights(m, count), trend(m, q * count), offset(count, 1);
  Matrix beta(q, count), covariance(q, q * count);
  for (Index c = 0; c < count; ++c) {
    const auto& f = sparse.functions[static_cast<std::size_t>(c)];
    offset(c) = f.offset;
    if (m > 0) {
      factor.middleCols(c * m, m) = f.factor.triangularView<Eigen::Lower>();
      weights.col(c) = f.mean_weights;
      if (q > 0) trend.middleCols(c * q, q) = f.trend_weights;
    }
    if (q > 0) {
      beta.col(c) = f.beta;
      covariance.middleCols(c * q, q) = f.beta_covariance;
    }
  }
  file.arrays["offset"] = std::move(offset);
  if (m > 0) {
    file.arrays["base_factor"] = std::move(factor);
    file.arrays["base_weights"] = std::move(weights);
    if (q > 0) file.arrays["base_trend"] = std::move(trend);
  }
  if (q > 0) {
    file.arrays["beta"] = std::move(beta);
    file.arrays["beta_covariance"] = std::move(covariance);
  }
}

std::vector<SparseFunction> functions_from(data::ArrayFile& file, Index m, Index q, Index count) {
  const Matrix offset = take(file, "offset", count, 1);
  Matrix factor, weights, trend, beta, covariance;
  if (m > 0) {
    factor = take(file, "base_factor", m, m * count);
    weights = take(file, "base_weights", m, count);
    if (q > 0) trend = take(file, "base_trend", m, q * count);
  }
  if (q > 0) {
    beta = take(file, "beta", q, count);
    covariance = take(file, "beta_covariance", q, q * count);
  }
  std::vector<SparseFunction> out;
  for (Index c = 0; c < count; ++c) {
    SparseFunction f;
    f.offset = offset(c);
    f.trend_weights.resize(m, q);
    if (m > 0) {
      f.factor = factor.middleCols(c * m, m);
      if (!(f.factor.diagonal().minCoeff() > 0))
        throw ModelFileError("a factor is not positive definite");
      f.mean_weights = weights.col(c);
      if (q > 0) f.trend_weights = trend.middleCols(c * q, q);
    }
    if (q > 0) {
      f.beta = beta.col(c);
      f.beta_covariance = covariance.middleCols(c * q, q);
    }
    out.push_back(std::move(f));
  }
  return out;
}

// What is kept says how it predicts (sparse_posterior.hpp), so each form needs all of its parts: a
// belief about base points, or rows in blocks, or the weights of all rows beside the base points.
void check_form(const SparsePosterior& sparse, Index belief) {
  const bool rows = sparse.x.rows() > 0, weights = sparse.weights.size() > 0,
             noise = sparse.noise.size() > 0, blocks = !sparse.blocks.order.empty();
  const bool from_base = !rows && !weights && !noise && !blocks && belief > 0;
  const bool by_rows = rows && weights && !noise && !blocks && belief > 0;
  const bool by_blocks = rows && weights && noise && blocks;
  if (!(from_base || by_rows || by_blocks) || sparse.chunk < 0 || !std::isfinite(sparse.jitter))
    throw ModelFileError("parts of its approximation are missing or do not go together");
}

}  // namespace

void write_sparse(const KernelMachine& model, data::ArrayFile& file) {
  const auto& sparse = *model.sparse;
  const bool keeps_rows = sparse.x.rows() > 0;
  const Index blocks = sparse.blocks.order.empty() ? 0 : sparse.blocks.count();
  file.header["approximation"] = {{"method", sparse.method},
                                  {"rows", model.sparse_rows},
                                  {"base_points", sparse.base.rows()},
                                  {"belief_points", sparse.functions.front().factor.rows()},
                                  {"jitter", sparse.jitter},
                                  {"keeps_rows", keeps_rows},
                                  {"row_weights", sparse.weights.size() > 0},
                                  {"row_noise", sparse.noise.size() > 0},
                                  {"blocks", blocks},
                                  {"blocks_learned", sparse.blocks_learned},
                                  {"chunk", sparse.chunk},
                                  {"check", check_json(model.check)}};
  file.header["noise"] = nullptr;
  write_beliefs(sparse, file);
  if (keeps_rows && sparse.base.rows() > 0) file.arrays["base"] = sparse.base;
  if (sparse.weights.size() > 0) file.arrays["row_weights"] = sparse.weights;
  if (sparse.noise.size() > 0) file.arrays["row_noise"] = sparse.noise;
  if (blocks == 0) return;
  file.arrays["block_order"] = as_column(sparse.blocks.order);
  file.arrays["block_offsets"] = as_column(sparse.blocks.offsets);
}

void read_sparse(data::ArrayFile& file, KernelMachine& model) {
  const nlohmann::json section = file.header.at("approximation");
  auto sparse = std::make_shared<SparsePosterior>();
  sparse->method = section.at("method").get<std::string>();
  if (!inference::methods().contains(sparse->method) ||
      !inference::methods().find(sparse->method).abilities.approximate)
    throw ModelFileError(fmt::format("its approximation '{}' is not known", sparse->method));
  const Index n = model.x.rows(), d = model.x.cols();
  const Index m = section.at("base_points").get<Index>();
  const Index belief = section.at("belief_points").get<Index>();
  const Index blocks = section.at("blocks").get<Index>();
  model.sparse_rows = section.at("rows").get<Index>();
  sparse->jitter = section.at("jitter").get<double>();
  sparse->chunk = section.at("chunk").get<Index>();
  sparse->blocks_learned = section.value("blocks_learned", blocks);
  const bool keeps_rows = section.at("keeps_rows").get<bool>();
  if (m < 0 || (belief != 0 && belief != m) || blocks < 0 || blocks > n || model.sparse_rows < 1 ||
      !(sparse->jitter >= 0) || sparse->blocks_learned < 0 || (!keeps_rows && m != n))
    throw ModelFileError("the sizes of its approximation do not agree");
  if (keeps_rows) {
    sparse->x = model.x;
    sparse->base = m > 0 ? take(file, "base", m, d) : Matrix(0, d);
  } else {
    sparse->base = model.x;
  }
  if (section.at("row_weights").get<bool>())
    sparse->weights = take(file, "row_weights", n, 1).col(0);
  if (section.at("row_noise").get<bool>()) {
    sparse->noise = take(file, "row_noise", n, 1).col(0);
    if (!(sparse->noise.minCoeff() > 0)) throw ModelFileError("a noise variance is not positive");
  }
  if (blocks > 0) sparse->blocks = blocks_from(file, n, blocks);
  check_form(*sparse, belief);
  const Index q = inference::mean_basis_size(model.problem.mean, d) -
                  static_cast<Index>(model.problem.trend_left_out.size());
  const Index count = model.classifies() ? model.classes.functions(model.coupled()) : 1;
  sparse->functions = functions_from(file, belief, q, count);
  model.check = check_from(section.at("check"));
  model.functions = latent_functions(*sparse);
  model.sparse = std::move(sparse);
}

std::vector<LatentFunction> latent_functions(const inference::SparsePosterior& sparse) {
  std::vector<LatentFunction> out;
  for (const auto& f : sparse.functions) {
    LatentFunction latent;
    latent.offset = f.offset;
    latent.weights.beta = f.beta;
    latent.weights.beta_covariance = f.beta_covariance;
    out.push_back(std::move(latent));
  }
  return out;
}

}  // namespace mercer::models
