/// Linear functions without an intercept (add `constant` for one).
struct Linear : DotLeaf {
  static constexpr LeafWords words = {
      .name = "linear",
      .formula = "s",
      .remark = "linear functions; linear:iso has no lengthscale, as the variance says the same"};
  static constexpr bool has_iso_lengthscale = false;
  static constexpr bool separable = false;

  template <class T>
  static T profile(T s, OwnNumbers) {
    return s;
  }
  template <class T>
  static T slope(T, OwnNumbers) {
    return T(1.0);
  }
  static PowerForm power(OwnNumbers) { return {.offset = 0, .degree = 1}; }
};
