// mercer: exact kernel machines with certificates. This is the table of contents, top down; include
// all of it, or the one header you need.
//
//   auto fit = mercer::models::fit(mercer::data::read_dataset("concrete.csv"), {});
//   fit.model.save("concrete.mcr");
#pragma once

// studies: what solvers need on given data, and data whose truth is known.
#include "mercer/studies/compare.hpp"                 // solvers x preconditioners
#include "mercer/studies/compare_approximations.hpp"  // against the exact posterior
#include "mercer/studies/cross_validation.hpp"        // how well rows left out are predicted
#include "mercer/studies/simulate.hpp"                // draws from a Gaussian process

// models: from a table to certified predictions.
#include "mercer/models/approximation_check.hpp"  // how far an approximation is from exact
#include "mercer/models/class_scores.hpp"         // error rate, nll, brier, auc, calibration
#include "mercer/models/classes.hpp"              // which classes a target has
#include "mercer/models/fit.hpp"                  // fit: from data to a certified model
#include "mercer/models/hyperparameters.hpp"      // in the units of the data
#include "mercer/models/kernel_machine.hpp"       // KernelMachine: a fitted model, its file
#include "mercer/models/merging.hpp"              // rows with the same inputs become one
#include "mercer/models/prediction_scores.hpp"    // scores of numbers and of classes
#include "mercer/models/predictor.hpp"            // Predictor: numbers and probabilities
#include "mercer/models/sampling/sample.hpp"      // draws of hyperparameters, and their mixture
#include "mercer/models/scores.hpp"               // rmse, nll, crps, coverage
#include "mercer/models/sd_error.hpp"             // the measured error of approximate variances
#include "mercer/models/solve.hpp"                // one system with fixed hyperparameters

// planning: what a run would cost, before it starts.
#include "mercer/planning/approximation_options.hpp"  // base points and blocks
#include "mercer/planning/options.hpp"                // what a user may ask for
#include "mercer/planning/plan.hpp"  // every way with its memory and seconds, and the choice
#include "mercer/planning/sampling_plan.hpp"  // the sampler, and what its draws cost

// training: which hyperparameters.
#include "mercer/training/base_points.hpp"     // base points of sparse approximations climb too
#include "mercer/training/report.hpp"          // how learning went
#include "mercer/training/sampling/prior.hpp"  // priors of hyperparameters
#include "mercer/training/training.hpp"        // train, and the registry of trainers
// Bounds and start values of hyperparameters: mercer/training/rules.hpp.

// data: CSV in and out, columns and categories, scaling, splits, simulated data.
#include "mercer/data/byte_sink.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/dataset.hpp"         // read_dataset, make_dataset, take_rows
#include "mercer/data/equal_rows.hpp"      // which rows repeat an earlier one
#include "mercer/data/noise_columns.hpp"   // how noisy each row is
#include "mercer/data/predict_stream.hpp"  // rows for an existing schema, block by block
#include "mercer/data/row_source.hpp"      // blocks of rows, rewound and sampled
#include "mercer/data/scaling.hpp"
#include "mercer/data/schema.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/data/split.hpp"

// inference: evidence and posterior at fixed hyperparameters, by any method of the registry.
#include "mercer/inference/inference.hpp"  // the interface, and the registry of methods
#include "mercer/inference/posterior.hpp"  // latent functions and their certificate
#include "mercer/inference/query.hpp"      // what is known of the functions at new points

// ... and what the methods are made of: the systems H = K + D and I + R'K R.
#include "mercer/inference/adaptive.hpp"  // what `preconditioner=auto` does
#include "mercer/inference/choice.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/exact/leave_one_out.hpp"     // in closed form
#include "mercer/inference/laplace/coupled_query.hpp"   // of functions that softmax couples
#include "mercer/inference/laplace/curvature_root.hpp"  // W = R R', diagonal or coupled in a row
#include "mercer/inference/laplace/curved_operator.hpp"  // B = I + R'K R, its factors and preconditioners
#include "mercer/inference/laplace/exact_laplace.hpp"  // its evidence and exact gradient, for few rows
#include "mercer/inference/laplace/laplace.hpp"        // the mode under any likelihood
#include "mercer/inference/laplace/laplace_gradient.hpp"  // by solves only
#include "mercer/inference/laplace/laplace_system.hpp"    // I + R'K R
#include "mercer/inference/laplace/local_likelihood.hpp"  // density, gradient and curvature of all rows
#include "mercer/inference/mean_function.hpp"
#include "mercer/inference/observations.hpp"     // of each row; what merging takes away
#include "mercer/inference/pathwise.hpp"         // draws from the posterior that are functions
#include "mercer/inference/problem.hpp"          // kernel, mean and likelihood
#include "mercer/inference/sparse/streamed.hpp"  // sparse approximations over passes of rows
#include "mercer/inference/speeds.hpp"           // from flops and products to seconds
#include "mercer/inference/system.hpp"

// likelihoods: how y follows from f.
#include "mercer/likelihoods/coupled_likelihood.hpp"  // of all functions of a row
#include "mercer/likelihoods/gaussian.hpp"
#include "mercer/likelihoods/likelihood.hpp"  // make("poisson"), and what inference asks of it

// report: pictures of results.
#include "mercer/report/chain_picture.hpp"  // traces, densities, autocorrelations
#include "mercer/report/heat_map.hpp"
#include "mercer/report/line_chart.hpp"  // error against time

// optim: minimise any function.
#include "mercer/optim/box.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/optim/quasi_newton.hpp"  // by gradients alone
#include "mercer/optim/replay.hpp"        // a log of evaluations, for resuming

// preconditioners, and the approximations of K they are made from.
#include "mercer/approximations/local_variance.hpp"  // given the nearest points only
#include "mercer/approximations/pivoted_cholesky.hpp"
#include "mercer/approximations/rpcholesky.hpp"    // can be grown
#include "mercer/approximations/vecchia.hpp"       // sparse factor of the inverse
#include "mercer/approximations/vecchia_draw.hpp"  // draws from N(0, K) at millions of points
#include "mercer/preconditioners/hybrid.hpp"       // low rank and sparse factor together
#include "mercer/preconditioners/jacobi.hpp"
#include "mercer/preconditioners/pivoted_cholesky.hpp"
#include "mercer/preconditioners/registry.hpp"  // by the name that users type
#include "mercer/preconditioners/rpcholesky.hpp"
#include "mercer/preconditioners/vecchia.hpp"
#include "mercer/preconditioners/woodbury.hpp"  // P = F F' + D

// diagnostics: whether chains of a sampler can be believed.
#include "mercer/diagnostics/autocorrelation.hpp"
#include "mercer/diagnostics/chains.hpp"        // R-hat, effective sample sizes, standard errors
#include "mercer/diagnostics/gelman_rubin.hpp"  // the classic factor
#include "mercer/diagnostics/summary.hpp"       // all of it for one parameter

// krylov: A X = B for symmetric A known by its products.
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"         // P may change from step to step
#include "mercer/krylov/gmres.hpp"       // A may be indefinite
#include "mercer/krylov/kernel_cg.hpp"   // losses in the function space of K
#include "mercer/krylov/refinement.hpp"  // mixed precision
#include "mercer/krylov/registry.hpp"    // by the name that users type
#include "mercer/krylov/solver.hpp"      // when a solve stops, and the results that solvers share
#include "mercer/krylov/ulisse.hpp"      // unbiased solutions from solves that stop at random

// operators: K V without K, by SIMD tiles.
#include "mercer/operators/cost.hpp"
#include "mercer/operators/cross_gradient.hpp"  // sums over pairs of two point sets
#include "mercer/operators/kernel_operator.hpp"
#include "mercer/operators/registry.hpp"  // by the name that users type
#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"

// kernels: expressions as values. The formula of each kernel is in mercer/kernels/leaves/.
#include "mercer/kernels/kernel.hpp"
#include "mercer/kernels/registry.hpp"

// linalg: the interfaces solvers see, and dense algebra on tiles.
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/linalg/diagonal.hpp"  // one value for all rows, or one for each
#include "mercer/linalg/linear_operator.hpp"

// core: the vocabulary; no mathematics.
#include "mercer/core/atomic_file.hpp"
#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/history.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/options.hpp"  // one list of fields for command line, files and records
#include "mercer/core/progress.hpp"
#include "mercer/core/registry.hpp"  // methods by the name that users type
#include "mercer/core/rng.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/core/types.hpp"
#include "mercer/core/version.hpp"
