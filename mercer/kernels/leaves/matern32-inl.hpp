/// Matern with nu = 3/2: R&W (2006) equation 4.17.
struct Matern32 : DistanceLeaf {
  static constexpr LeafWords words = {.name = "matern32",
                                      .formula = "(1 + a) exp(-a), a = sqrt(3) r",
                                      .remark = "once differentiable"};
  static constexpr bool smooth_at_zero = true;
  static constexpr bool separable = false;

  template <class T>
  static T profile(T r2, OwnNumbers) {
    const T a = sqrt(r2 * T(3.0));
    return (a + T(1.0)) * exp(T(0.0) - a);
  }
  template <class T>
  static T slope(T r2, OwnNumbers) {
    return exp(T(0.0) - sqrt(r2 * T(3.0))) * T(-1.5);
  }
  // The polynomial factor included: log(1 + a) < a - r from r = 100 on.
  static double exponent(double r2, OwnNumbers) { return std::sqrt(r2); }

  // n = -sqrt(-acc) = -a log2(e).
  static constexpr double gain_squared = 6 * std::numbers::log2e * std::numbers::log2e;
  template <class T>
  [[gnu::always_inline]] static inline T from_acc(T acc) {
    const T n = negative_root(acc);
    return mul_add(n, T(-std::numbers::ln2), T(1.0)) * exp2(n);
  }

  /// Student-t frequencies with 2 nu degrees of freedom.
  static double frequency_scale(OwnNumbers, Rng& rng) {
    return 1 / std::sqrt(unit_gamma(1.5, rng));
  }
};
