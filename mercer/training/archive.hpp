// The state of a trainer as named arrays: one list of its fields serves saving and loading.
#pragma once

#include <string>
#include <vector>

#include "mercer/inference/inference.hpp"

namespace mercer::training {

class Archive {
 public:
  /// Saves into a new state, or loads from one that is given.
  Archive() : saving_(true) {}
  explicit Archive(inference::State from) : state_(std::move(from)), saving_(false) {}

  template <class T>
  void number(const std::string& name, T& value) {
    if (saving_)
      state_[name] = Vector::Constant(1, static_cast<double>(value));
    else
      value = static_cast<T>(inference::saved_array(state_, name, 1)(0));
  }
  template <class T>
  void array(const std::string& name, T& value) {
    if (saving_)
      state_[name] = value;
    else
      value = inference::saved_array(state_, name);
  }
  /// Vectors of one length.
  void columns(const std::string& name, std::vector<Vector>& values) {
    if (saving_) {
      Matrix& table = state_[name];
      table.resize(values.empty() ? 0 : values.front().size(), static_cast<Index>(values.size()));
      for (std::size_t i = 0; i < values.size(); ++i) table.col(static_cast<Index>(i)) = values[i];
      return;
    }
    values.clear();
    for (const auto& column : inference::saved_array(state_, name).colwise())
      values.emplace_back(column);
  }
  void numbers(const std::string& name, std::vector<double>& values) {
    if (saving_) {
      state_[name] = Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
      return;
    }
    const Matrix& saved = inference::saved_array(state_, name);
    values.assign(saved.data(), saved.data() + saved.size());
  }
  /// Arrays of another state, with this before their names.
  void nested(const std::string& prefix, inference::State& own) {
    if (saving_) {
      for (const auto& [name, values] : own) state_[prefix + name] = values;
      return;
    }
    own.clear();
    for (const auto& [name, values] : state_)
      if (name.starts_with(prefix)) own[name.substr(prefix.size())] = values;
  }
  /// What the method of inference keeps.
  void method(inference::Inference& inference, const inference::Problem& like) {
    static const std::string prefix = "inference_";
    if (saving_) {
      for (auto& [name, values] : inference.save()) state_[prefix + name] = std::move(values);
      return;
    }
    inference::State own;
    for (const auto& [name, values] : state_)
      if (name.starts_with(prefix)) own[name.substr(prefix.size())] = values;
    inference.load(own, like);
  }

  const inference::State& state() const { return state_; }

 private:
  inference::State state_;
  bool saving_;
};

}  // namespace mercer::training
