/// Rational quadratic, rbf with a Gamma distribution over 1/l^2: R&W (2006) equation 4.19.
struct RationalQuadratic : DistanceLeaf {
  static constexpr LeafWords words = {
      .name = "rq",
      .aliases = {"rational_quadratic"},
      .formula = "(1 + r^2/(2 alpha))^-alpha",
      .remark = "infinitely differentiable; a mixture of rbf lengthscales"};
  static constexpr ShapeParameter shape = {.name = "alpha", .start = 1.0};
  static constexpr bool smooth_at_zero = true;
  static constexpr bool separable = false;

  template <class T>
  static T profile(T r2, OwnNumbers own) {
    return exp(log1p(r2 * T(0.5 / own.shape)) * T(-own.shape));
  }
  template <class T>
  static T slope(T r2, OwnNumbers own) {
    const T q = r2 * T(0.5 / own.shape);
    return exp(log1p(q) * T(-own.shape)) * T(-0.5) / (q + T(1.0));
  }
  // With q = r^2/(2 alpha): d/dlog alpha = k alpha (q / (1+q) - log(1+q)).
  template <class T>
  static T shape_slope(T r2, T, OwnNumbers own) {
    const T q = r2 * T(0.5 / own.shape);
    const T log_base = log1p(q);
    return exp(log_base * T(-own.shape)) * (q / (q + T(1.0)) - log_base) * T(own.shape);
  }
  static double exponent(double, OwnNumbers) { return 0; }

  static double frequency_scale(OwnNumbers own, Rng& rng) {
    return std::sqrt(unit_gamma(own.shape, rng));
  }
};
