/// Polynomials of all degrees up to the one given: R&W (2006) equation 4.22.
struct Polynomial : DotLeaf {
  static constexpr LeafWords words = {.name = "poly",
                                      .aliases = {"polynomial"},
                                      .formula = "(s + offset)^degree",
                                      .remark = "polynomials; the degree is written poly:3"};
  static constexpr ShapeParameter shape = {.name = "offset", .start = 1.0};
  static constexpr DegreeParameter degree = {.start = 2, .most = 16};
  static constexpr bool separable = false;

  template <class T>
  static T profile(T s, OwnNumbers own) {
    return pow_int(s + T(own.shape), own.degree);
  }
  template <class T>
  static T slope(T s, OwnNumbers own) {
    return pow_int(s + T(own.shape), own.degree - 1) * T(static_cast<double>(own.degree));
  }
  // The offset is added to s, so d/dlog offset is the slope times the offset.
  template <class T>
  static T shape_slope(T, T slope, OwnNumbers own) {
    return slope * T(own.shape);
  }
  static PowerForm power(OwnNumbers own) { return {.offset = own.shape, .degree = own.degree}; }
};
