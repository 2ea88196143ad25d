# The diagnostics of chain_diagnostics.cpp by coda and posterior, in the same format.
suppressMessages({library(coda); library(posterior)})
files <- commandArgs(trailingOnly = TRUE)
show <- function(file, name, value) cat(sprintf("%d %s %s\n", file, name, format(value, digits = 17)))
quiet <- function(value) tryCatch(suppressWarnings(value), error = function(e) NaN)
all <- lapply(files, function(path) unname(as.matrix(read.csv(path, header = FALSE))))
as_list <- function(x) mcmc.list(lapply(seq_len(ncol(x)), function(j) mcmc(x[, j])))
psrf <- function(file, name, x, transform) {
  if (ncol(x) < 2 || nrow(x) < 2) {
    cat(sprintf("%d %s none\n%d %s_upper none\n", file, name, file, name))
    return(invisible())
  }
  both <- tryCatch(suppressWarnings(gelman.diag(as_list(x), autoburnin = FALSE, transform = transform,
                                                multivariate = FALSE)$psrf),
                   error = function(e) c(NaN, NaN))
  show(file, name, both[1]); show(file, paste0(name, "_upper"), both[2])
}
for (k in seq_along(all)) {
  x <- all[[k]]; i <- k - 1
  show(i, "mean", mean(x)); show(i, "sd", sd(x))
  show(i, "q05", quiet(quantile(x, 0.05)[[1]])); show(i, "median", quiet(median(x)))
  show(i, "q95", quiet(quantile(x, 0.95)[[1]]))
  show(i, "rhat", quiet(rhat(x))); show(i, "ess_bulk", quiet(ess_bulk(x)))
  show(i, "ess_tail", quiet(ess_tail(x))); show(i, "ess_mean", quiet(ess_mean(x)))
  show(i, "ess_whole", quiet(ess_basic(x, split = FALSE)))
  show(i, "ess_median", quiet(ess_quantile(x, 0.5, names = FALSE)))
  show(i, "mcse_mean", quiet(mcse_mean(x))); show(i, "mcse_sd", quiet(mcse_sd(x)))
  show(i, "mcse_q05", quiet(mcse_quantile(x, 0.05, names = FALSE)))
  show(i, "mcse_q95", quiet(mcse_quantile(x, 0.95, names = FALSE)))
  show(i, "effective_size", quiet(if (nrow(x) < 2) NaN else effectiveSize(as_list(x))[[1]]))
  psrf(i, "psrf", x, FALSE); psrf(i, "psrf_transformed", x, TRUE)
  lags <- min(nrow(x) - 1, 10)
  show(i, "autocorrelation", quiet(as.vector(autocorr(mcmc(x[, 1]), lags = lags))))
}
shapes <- unique(lapply(all, dim))
if (length(all) > 1 && length(shapes) == 1 && ncol(all[[1]]) > 1) {
  joint <- mcmc.list(lapply(seq_len(ncol(all[[1]])), function(j) mcmc(sapply(all, function(x) x[, j]))))
  show(0, "multivariate", gelman.diag(joint, autoburnin = FALSE)$mpsrf)
}
