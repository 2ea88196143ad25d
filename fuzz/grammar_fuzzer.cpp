// Any text is either refused with InvalidArgument or is a kernel whose text reads back as the same
// kernel and whose values are finite.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "mercer/core/error.hpp"
#include "mercer/kernels/kernel.hpp"

namespace {

using mercer::Index;
using mercer::Vector;
using mercer::kernels::Kernel;

void require(bool holds, const char* what, const Kernel& kernel) {
  if (holds) return;
  std::fprintf(stderr, "grammar fuzzer: %s: %s\n", what, kernel.text().c_str());
  std::abort();
}

void check_round_trip(const Kernel& kernel) {
  const Kernel again = Kernel::parse(kernel.text(), kernel.num_inputs());
  require(again.text() == kernel.text(), "text changes when read back", kernel);
  require(again.parameter_names() == kernel.parameter_names(), "parameters change", kernel);
}

// With parameters of moderate size and points near the origin no leaf is large, so a sum or
// product of at most 64 of them is finite; 1.5^(16 * 64) is the largest a polynomial can give.
void check_values(Kernel kernel) {
  require(kernel.log_parameters().allFinite(), "a parameter is not finite", kernel);
  kernel.set_log_parameters(Vector::Zero(kernel.num_parameters()));
  const Index d = kernel.num_inputs();
  const Vector a = Vector::Constant(d, 0.25);
  const Vector b = Vector::LinSpaced(d, 0.0, 0.5);
  Vector gradient(kernel.num_parameters());
  const double ab = kernel.evaluate_with_gradient(a.data(), 1, b.data(), 1, gradient);
  const double ba = kernel.evaluate(b.data(), 1, a.data(), 1);
  require(std::isfinite(ab) && gradient.allFinite(), "a value is not finite", kernel);
  require(ab == ba, "not symmetric", kernel);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Index num_inputs = 1 + data[0] % 4;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const Kernel kernel = Kernel::parse(text, num_inputs);
    check_round_trip(kernel);
    check_values(kernel);
  } catch (const mercer::InvalidArgument&) {  // refused with a sentence: fine
  }
  return 0;
}
