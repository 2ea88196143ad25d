// Diagnostics of chains from files, for the comparison with R: chain_diagnostics FILE...; each has
// one row for each iteration and one column for each chain. Prints "file quantity value" lines.
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "mercer/diagnostics/autocorrelation.hpp"
#include "mercer/diagnostics/chains.hpp"
#include "mercer/diagnostics/gelman_rubin.hpp"
#include "mercer/diagnostics/summary.hpp"

namespace {

using mercer::Index;
using mercer::Matrix;
namespace diagnostics = mercer::diagnostics;

Matrix read(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(in, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(std::stod(cell));
  }
  const Index count = static_cast<Index>(rows.size());
  const Index chains = count > 0 ? static_cast<Index>(rows.front().size()) : 0;
  Matrix out(count, chains);
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < chains; ++j)
      out(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  return out;
}

void print(std::size_t file, const char* name, double value) {
  fmt::print("{} {} {:.17g}\n", file, name, value);
}

void print_psrf(std::size_t file, const char* name, const Matrix& draws, bool transform) {
  const auto psrf = diagnostics::gelman_rubin(draws, {.transform = transform});
  if (!psrf) return fmt::print("{0} {1} none\n{0} {1}_upper none\n", file, name);
  print(file, name, psrf->estimate);
  fmt::print("{} {}_upper {:.17g}\n", file, name, psrf->upper);
}

void print_all(std::size_t file, const Matrix& draws) {
  const auto s = diagnostics::summarise(draws);
  print(file, "mean", s.mean);
  print(file, "sd", s.sd);
  print(file, "q05", s.q05);
  print(file, "median", s.median);
  print(file, "q95", s.q95);
  print(file, "rhat", s.rhat);
  print(file, "ess_bulk", s.ess_bulk);
  print(file, "ess_tail", s.ess_tail);
  print(file, "ess_mean", s.ess_mean);
  print(file, "ess_whole", diagnostics::ess_basic(draws, false));
  print(file, "ess_median", diagnostics::ess_quantile(draws, 0.5));
  print(file, "mcse_mean", s.mcse_mean);
  print(file, "mcse_sd", s.mcse_sd);
  print(file, "mcse_q05", s.mcse_q05);
  print(file, "mcse_q95", s.mcse_q95);
  print(file, "effective_size", s.effective_size);
  print_psrf(file, "psrf", draws, false);
  print_psrf(file, "psrf_transformed", draws, true);
  const Index lags = std::min<Index>(draws.rows() - 1, 10);
  print(file, "autocorrelation", diagnostics::autocorrelation(draws.col(0), lags)(lags));
}

}  // namespace

int main(int count, char** words) {
  std::vector<Matrix> all;
  for (int i = 1; i < count; ++i) all.push_back(read(words[i]));
  for (std::size_t i = 0; i < all.size(); ++i) print_all(i, all[i]);
  // Of files of one shape, which R needs too.
  for (const Matrix& each : all)
    if (each.rows() != all[0].rows() || each.cols() != all[0].cols()) return 0;
  if (const auto joint = diagnostics::multivariate_gelman_rubin(all))
    print(0, "multivariate", *joint);
  return 0;
}
