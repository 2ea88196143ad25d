/// The same random number everywhere: an intercept.
struct Constant : ConstantLeaf {
  static constexpr LeafWords words = {
      .name = "constant", .formula = "1", .remark = "one unknown number, such as an intercept"};
  static constexpr bool separable = true;

  template <class T>
  static T profile(T, OwnNumbers) {
    return T(1.0);
  }
};
