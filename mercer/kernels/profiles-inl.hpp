// The formulas of the leaves, written once for scalars and for SIMD packs.
//
// This file has no include guard on purpose: it is included once for double (by kernel.cpp) and
// once per instruction set (by operators/simd/), each time inside a namespace that provides
// exp, log1p, sqrt, max, pow_int and rsqrt-free arithmetic for the type T. Constants are passed
// through T(...) so that packs can broadcast them.
//
// Distance leaves: profile(r2, shape) and slope = d profile / d r2; shape_slope = d / d log shape.
// A lengthscale then follows for all of them: dk/dlog l_c = -2 slope(r2) (dx_c / l_c)^2.

/// exp(-r^2/2). Also the profile of `periodic`, on the features of the circle map.
struct Rbf {
  static constexpr LeafKind kind = LeafKind::rbf;
  template <class T>
  static T profile(T r2, double) {
    return exp(r2 * T(-0.5));
  }
  template <class T>
  static T slope(T r2, double) {
    return exp(r2 * T(-0.5)) * T(-0.5);
  }
};

/// exp(-r).
struct Matern12 {
  static constexpr LeafKind kind = LeafKind::matern12;
  template <class T>
  static T profile(T r2, double) {
    return exp(T(0.0) - sqrt(r2));
  }
  // The slope is infinite at r = 0, where (dx_c)^2 = 0 makes the derivative 0: the floor keeps
  // the product finite and exact there.
  template <class T>
  static T slope(T r2, double) {
    const T r = sqrt(max(r2, T(1e-30)));
    return exp(T(0.0) - r) * T(-0.5) / r;
  }
};

/// (1 + a) exp(-a), a = sqrt(3) r.
struct Matern32 {
  static constexpr LeafKind kind = LeafKind::matern32;
  template <class T>
  static T profile(T r2, double) {
    const T a = sqrt(r2 * T(3.0));
    return (a + T(1.0)) * exp(T(0.0) - a);
  }
  template <class T>
  static T slope(T r2, double) {
    return exp(T(0.0) - sqrt(r2 * T(3.0))) * T(-1.5);
  }
};

/// (1 + a + a^2/3) exp(-a), a = sqrt(5) r.
struct Matern52 {
  static constexpr LeafKind kind = LeafKind::matern52;
  template <class T>
  static T profile(T r2, double) {
    const T a = sqrt(r2 * T(5.0));
    return (a * a * T(1.0 / 3.0) + a + T(1.0)) * exp(T(0.0) - a);
  }
  template <class T>
  static T slope(T r2, double) {
    const T a = sqrt(r2 * T(5.0));
    return (a + T(1.0)) * exp(T(0.0) - a) * T(-5.0 / 6.0);
  }
};

/// (1 + r^2/(2 alpha))^-alpha.
struct RationalQuadratic {
  static constexpr LeafKind kind = LeafKind::rq;
  template <class T>
  static T profile(T r2, double alpha) {
    return exp(log1p(r2 * T(0.5 / alpha)) * T(-alpha));
  }
  template <class T>
  static T slope(T r2, double alpha) {
    const T q = r2 * T(0.5 / alpha);
    return exp(log1p(q) * T(-alpha)) * T(-0.5) / (q + T(1.0));
  }
  // With q = r^2/(2 alpha): d/dlog alpha = k alpha (q / (1+q) - log(1+q)).
  template <class T>
  static T shape_slope(T r2, double alpha) {
    const T q = r2 * T(0.5 / alpha);
    const T log_base = log1p(q);
    return exp(log_base * T(-alpha)) * (q / (q + T(1.0)) - log_base) * T(alpha);
  }
};

/// s.
struct Linear {
  static constexpr LeafKind kind = LeafKind::linear;
  template <class T>
  static T profile(T s, double, int) {
    return s;
  }
  template <class T>
  static T slope(T, double, int) {
    return T(1.0);
  }
};

/// (s + offset)^degree.
struct Polynomial {
  static constexpr LeafKind kind = LeafKind::poly;
  template <class T>
  static T profile(T s, double offset, int degree) {
    return pow_int(s + T(offset), degree);
  }
  template <class T>
  static T slope(T s, double offset, int degree) {
    return pow_int(s + T(offset), degree - 1) * T(static_cast<double>(degree));
  }
};
