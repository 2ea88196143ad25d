// Bytes that the test program has allocated with operator new, to hold formulas of memory to what
// is really taken. Matrices of Eigen are not among them.
#pragma once

namespace mercer::testing {

/// Starts a new peak from what is in use now.
void restart_peak();
/// The most bytes in use since then, beyond those in use at that moment.
double peak_bytes();

}  // namespace mercer::testing
