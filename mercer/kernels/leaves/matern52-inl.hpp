/// Matern with nu = 5/2: R&W (2006) equation 4.17.
struct Matern52 : DistanceLeaf {
  static constexpr LeafWords words = {.name = "matern52",
                                      .formula = "(1 + a + a^2/3) exp(-a), a = sqrt(5) r",
                                      .remark = "twice differentiable"};
  static constexpr bool smooth_at_zero = true;
  static constexpr bool separable = false;

  template <class T>
  static T profile(T r2, OwnNumbers) {
    const T a = sqrt(r2 * T(5.0));
    return (a * a * T(1.0 / 3.0) + a + T(1.0)) * exp(T(0.0) - a);
  }
  template <class T>
  static T slope(T r2, OwnNumbers) {
    const T a = sqrt(r2 * T(5.0));
    return (a + T(1.0)) * exp(T(0.0) - a) * T(-5.0 / 6.0);
  }
  // The polynomial factor included: its logarithm is below a - r from r = 100 on.
  static double exponent(double r2, OwnNumbers) { return std::sqrt(r2); }

  // n = -sqrt(-acc) = -a log2(e).
  static constexpr double gain_squared = 10 * std::numbers::log2e * std::numbers::log2e;
  template <class T>
  [[gnu::always_inline]] static inline T from_acc(T acc) {
    constexpr double ln2 = std::numbers::ln2;
    const T n = negative_root(acc);
    const T linear = mul_add(n, T(ln2 * ln2 / 3), T(-ln2));
    return mul_add(n, linear, T(1.0)) * exp2(n);
  }

  /// Student-t frequencies with 2 nu degrees of freedom.
  static double frequency_scale(OwnNumbers, Rng& rng) {
    return 1 / std::sqrt(unit_gamma(2.5, rng));
  }
};
