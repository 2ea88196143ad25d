/// rbf on the circle map of each input: r2 = sum_c (2 sin(pi (x_c - x'_c) / period) / l_c)^2.
///   Source: MacKay (1998), R&W (2006) equation 4.31.
/// The derivative in the period needs the inputs themselves, so it belongs to the circle map
/// (kernels/evaluation.cpp, operators/detail/gradient.cpp) and not to the profile.
struct Periodic : DistanceLeaf {
  static constexpr LeafWords words = {
      .name = "periodic",
      .formula = "exp(-2 sum_c sin^2(pi (x_c - x'_c)/period) / l_c^2)",
      .remark = "periodic in each input"};
  static constexpr InputMap inputs = InputMap::circle;
  static constexpr ShapeParameter shape = {.name = "period", .start = 1.0};
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
  static double exponent(double, OwnNumbers) { return 0; }

  static constexpr double gain_squared = std::numbers::log2e;
  template <class T>
  [[gnu::always_inline]] static inline T from_acc(T acc) {
    return exp2(acc);
  }

  /// P(j) = exp(-z) I_|j|(z) over the integers: variance z. Above `wide` a rounded normal with that
  /// variance, which is the same to about 1/(10 z).
  class Harmonics {
   public:
    explicit Harmonics(double z) : z_(z) {
      if (z > wide) return;
      // I_j / I_{j-1} = 1 / (2 j / z + I_{j+1} / I_j), backwards from where it is nothing.
      const auto last = static_cast<std::size_t>(30 + 9 * std::sqrt(z));
      std::vector<double> ratio(last + 2, 0.0);
      for (std::size_t j = last; j > 0; --j)
        ratio[j] = 1 / (2 * static_cast<double>(j) / z + ratio[j + 1]);
      double weight = 1, sum = 1;
      cumulative_ = {1.0};
      for (std::size_t j = 1; j <= last; ++j) {
        weight *= ratio[j];
        sum += 2 * weight;
        cumulative_.push_back(sum);
      }
      for (double& c : cumulative_) c /= sum;
    }

    double draw(Rng& rng) const {
      const double sign = rng.sign(), u = rng.uniform();
      if (z_ > wide) return std::round(std::sqrt(z_) * rng.normal());
      const auto at = std::lower_bound(cumulative_.begin(), cumulative_.end(), u);
      return sign * static_cast<double>(std::min(at, cumulative_.end() - 1) - cumulative_.begin());
    }

   private:
    static constexpr double wide = 1e6;
    double z_;
    std::vector<double> cumulative_;  // of |j|
  };

  /// w_c = 2 pi j / period with j from the Fourier series of exp(-2 sin^2(pi u / period) / l_c^2):
  /// P(j) as above with z = 1 / l_c^2.
  static void add_frequencies(std::span<const double> lengthscales, OwnNumbers own, Rng& rng,
                              MatrixView w) {
    std::vector<Harmonics> harmonics;
    for (const double l : lengthscales) harmonics.emplace_back(1 / (l * l));
    for (Index i = 0; i < w.cols(); ++i)
      for (Index c = 0; c < w.rows(); ++c)
        w(c, i) +=
            2 * std::numbers::pi / own.shape * harmonics[static_cast<std::size_t>(c)].draw(rng);
  }
};
