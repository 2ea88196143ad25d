#include "mercer/studies/compare_methods.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::studies {
namespace {

bool suits(const std::string& name, const kernels::Kernel& kernel, ConstMatrixView x) {
  const auto& info = preconditioners::preconditioner(name);
  return info.refusal == nullptr || info.refusal(kernel, x.rows(), x.cols()).empty();
}

std::string outer_solver(const std::string& asked, const std::string& preconditioner) {
  return asked == "auto" ? planning::iterative_solver(asked, preconditioner) : asked;
}

// An option that none of the preconditioners named takes would be ignored in silence.
void check_taken(const CompareOptions& options) {
  if (options.preconditioners.empty()) return;
  auto left = planning::given_preconditioning(options.method);
  for (const auto& name : options.preconditioners)
    visit_options(left, planning::taken_by(name), [](const char*, auto& value, bool taken) {
      if (taken) value.reset();
    });
  visit_options(left, {}, [](const char* name, const auto& value, bool) {
    if (value)
      throw InvalidArgument(
          fmt::format("`{}` has no meaning for any of the preconditioners compared", name));
  });
}

}  // namespace

std::vector<CompareMethod> compare_methods(const CompareOptions& options,
                                           const kernels::Kernel& kernel, ConstMatrixView x) {
  auto names = options.preconditioners;
  if (names.empty()) {
    names.emplace_back("none");
    for (const auto& info : preconditioners::preconditioners())
      if (info.name != "none" && suits(std::string(info.name), kernel, x))
        names.emplace_back(info.name);
    names.emplace_back("auto");
  }
  std::vector<CompareMethod> out = {{std::string(krylov::default_solver().name), "none"}};
  const auto add = [&](const CompareMethod& method) {
    for (const auto& known : out)
      if (known.solver == method.solver && known.preconditioner == method.preconditioner) return;
    out.push_back(method);
  };
  for (const auto& solver : options.solvers) {
    if (solver != "auto" && !inference::solver(solver).takes_preconditioner) {
      add({solver, "none"});
      continue;
    }
    for (const auto& name : names) {
      const CompareMethod method{outer_solver(solver, name), name};
      add(method);
    }
  }
  return out;
}

std::string CompareRun::label() const {
  if (inference::is_cholesky(solver)) return solver;
  if (preconditioner == "none") return solver;
  if (solver == outer_solver("auto", preconditioner)) return preconditioner;
  return fmt::format("{} + {}", solver, preconditioner);
}

void check(const CompareOptions& options) {
  validate(options);
  if (options.lengthscales.empty()) throw InvalidArgument("`lengthscales` names no value");
  if (options.noises.empty()) throw InvalidArgument("`noises` names no value");
  if (options.solvers.empty()) throw InvalidArgument("`solvers` names no solver");
  auto method = options.method;
  // Options of single preconditioners are allowed when any of those compared takes them.
  method.preconditioning = {};
  method.landmarks = "auto";
  // So are those of a random stop, which any of the solvers may have.
  for (const auto& name : options.solvers)
    if (name != "auto" && inference::solver(name).unbiased) method.solver = name;
  planning::check(method);
  check_taken(options);
  if (options.rows && *options.rows < 2) throw InvalidArgument("`rows` must be at least 2");
}

}  // namespace mercer::studies
