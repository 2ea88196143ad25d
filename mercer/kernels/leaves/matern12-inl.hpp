/// Matern with nu = 1/2, the covariance of the Ornstein-Uhlenbeck process.
struct Matern12 : DistanceLeaf {
  static constexpr LeafWords words = {.name = "matern12",
                                      .aliases = {"exponential"},
                                      .formula = "exp(-r)",
                                      .remark = "continuous, not differentiable"};
  static constexpr bool smooth_at_zero = false;
  static constexpr bool separable = false;

  template <class T>
  static T profile(T r2, OwnNumbers) {
    return exp(T(0.0) - sqrt(r2));
  }
  // The slope is infinite at r = 0, where (dx_c)^2 = 0 makes the derivative 0: the floor keeps
  // the product finite and exact there.
  template <class T>
  static T slope(T r2, OwnNumbers) {
    const T r = sqrt(max(r2, T(1e-30)));
    return exp(T(0.0) - r) * T(-0.5) / r;
  }
  static double exponent(double r2, OwnNumbers) { return std::sqrt(r2); }

  // -sqrt(-acc) = -r log2(e).
  static constexpr double gain_squared = 2 * std::numbers::log2e * std::numbers::log2e;
  template <class T>
  [[gnu::always_inline]] static inline T from_acc(T acc) {
    return exp2(negative_root(acc));
  }

  /// Student-t frequencies with 2 nu degrees of freedom.
  static double frequency_scale(OwnNumbers, Rng& rng) {
    return 1 / std::sqrt(unit_gamma(0.5, rng));
  }
};
