/// Squared exponential, the limit of the Matern family: R&W (2006) equation 4.9.
struct Rbf : DistanceLeaf {
  static constexpr LeafWords words = {.name = "rbf",
                                      .aliases = {"gaussian", "se"},
                                      .formula = "exp(-r^2/2)",
                                      .remark = "infinitely differentiable"};
  static constexpr bool smooth_at_zero = true;
  static constexpr bool separable = true;

  template <class T>
  static T profile(T r2, OwnNumbers) {
    return exp(r2 * T(-0.5));
  }
  template <class T>
  static T slope(T r2, OwnNumbers) {
    return exp(r2 * T(-0.5)) * T(-0.5);
  }
  static double exponent(double r2, OwnNumbers) { return r2 / 2; }

  // acc is the exponent of 2; rounding may leave it just above 0, which does no harm here.
  static constexpr double gain_squared = std::numbers::log2e;
  template <class T>
  [[gnu::always_inline]] static inline T from_acc(T acc) {
    return exp2(acc);
  }

  static double frequency_scale(OwnNumbers, Rng&) { return 1; }
};
