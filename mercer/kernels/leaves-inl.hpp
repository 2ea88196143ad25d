// The leaves that kernel expressions are made of: the one list, and what a leaf states.
//
// To add a leaf, write leaves/NAME-inl.hpp, include it here and add its struct to AllLeaves. The
// grammar, the reference evaluation, the SIMD tiles, gradients, random features, grids, --help and
// the law tests follow from the list. registry.cpp refuses to compile a leaf that lacks a part, and
// tests/kernels fail without a textbook formula to compare with and a line in docs/kernels.md.
//
// A leaf is a struct that derives from DistanceLeaf, DotLeaf or ConstantLeaf and states
//   words                        names, formula and remark, for grammar, help and documentation
//   profile(x, own)              k as a function of x = r2 (distance) or x = s (dot)
//   slope(x, own)                d profile / d x. The derivatives in lengthscales follow:
//                                dk/dlog l_c = -2 slope (dx_c/l_c)^2, or -2 slope x_c x'_c / l_c^2
//   shape, shape_slope(x, slope, own)
//                                a parameter of its own and d profile / d log shape, if it has one
//   separable                    k over several inputs is the product of k over each of them
// and in the distance family
//   smooth_at_zero               the slope is finite at r = 0: r2 may then be computed as
//                                |a|^2 + |b|^2 - 2 a.b, which loses digits of small distances
//   exponent(r2, own)            k <= exp(-exponent) wherever this is above 100; tiles farther
//                                apart than that are left out. 0: never
//   frequency_scale(own, rng)    k is the mean of cos(w'(x - x')) over w_c = scale * normal / l_c;
//   or add_frequencies(lengthscales, own, rng, w) for any other spectral measure;
//   or no_features               the reason why there is no such measure to draw from
//   from_acc(acc), gain_squared  optional: the value from acc = -gain_squared r2/2, for tiles
// and in the dot family
//   power(own)                   k as (s + offset)^degree, or no_features.
//
// This file and the leaves have no include guard: they are included once for double (registry.cpp)
// and once per instruction set (operators/simd/), each time inside a namespace that provides exp,
// log1p, sqrt, max and pow_int for the type T, for packs also exp2, negative_root and mul_add.
// Constants are passed through T(...), so that packs can broadcast them.
// NOLINTBEGIN(misc-unused-using-decls)
using mercer::kernels::ConstantLeaf;
using mercer::kernels::DegreeParameter;
using mercer::kernels::DistanceLeaf;
using mercer::kernels::DotLeaf;
using mercer::kernels::InputMap;
using mercer::kernels::LeafList;
using mercer::kernels::LeafWords;
using mercer::kernels::OwnNumbers;
using mercer::kernels::PowerForm;
using mercer::kernels::ShapeParameter;
using mercer::kernels::unit_gamma;
// NOLINTEND(misc-unused-using-decls)

#include "mercer/kernels/leaves/constant-inl.hpp"
#include "mercer/kernels/leaves/linear-inl.hpp"
#include "mercer/kernels/leaves/matern12-inl.hpp"
#include "mercer/kernels/leaves/matern32-inl.hpp"
#include "mercer/kernels/leaves/matern52-inl.hpp"
#include "mercer/kernels/leaves/periodic-inl.hpp"
#include "mercer/kernels/leaves/poly-inl.hpp"
#include "mercer/kernels/leaves/rbf-inl.hpp"
#include "mercer/kernels/leaves/rq-inl.hpp"

using AllLeaves = LeafList<Rbf, Matern12, Matern32, Matern52, RationalQuadratic, Periodic, Linear,
                           Polynomial, Constant>;
