// The entries of one kind (likelihoods, solvers, operators, ...) by the name that users type. Each
// method's own file describes it (`LikelihoodInfo poisson_info()`), one source of its room lists
// these descriptions, and everything else (help, plan, comparisons, law tests) loops over the list.
//
//   Registry<LikelihoodInfo>& likelihoods() {
//     static Registry<LikelihoodInfo> all("likelihood", {gaussian_info(), poisson_info()});
//     return all;
//   }
//
// Not synchronised: entries are added before the registry is used by other threads, and removed
// after. References to entries stay valid while others are added and removed.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mercer/core/error.hpp"

MERCER_API_BEGIN
namespace mercer {

/// Entry has `name` and `summary`, both convertible to std::string_view.
template <class Entry>
class Registry {
 public:
  /// Removes the entry it stands for when it goes out of scope; must not outlive the registry.
  class [[nodiscard]] Registration {
   public:
    Registration(Registration&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), entry_(other.entry_) {}
    Registration& operator=(Registration&&) = delete;
    ~Registration() {
      if (owner_ != nullptr) owner_->entries_.erase(entry_);
    }

   private:
    friend class Registry;
    Registration(Registry* owner, typename std::list<Entry>::iterator entry)
        : owner_(owner), entry_(entry) {}
    Registry* owner_;
    typename std::list<Entry>::iterator entry_;
  };

  /// `kind` is what one entry is called in messages: "solver". Throws InvalidArgument when two
  /// entries share a name or one has no name or no summary.
  Registry(std::string kind, std::vector<Entry> entries) : kind_(std::move(kind)) {
    for (auto& entry : entries) append(std::move(entry));
  }
  Registry(const Registry&) = delete;  // registrations point to their registry
  Registry& operator=(const Registry&) = delete;

  /// In the order of the list; entries added later follow.
  const std::list<Entry>& all() const { return entries_; }
  using value_type = Entry;
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : entries_) out.emplace_back(entry.name);
    return out;
  }

  bool contains(std::string_view name) const { return look_up(name) != nullptr; }

  /// Throws InvalidArgument that lists the names there are.
  const Entry& find(std::string_view name) const {
    if (const Entry* entry = look_up(name)) return *entry;
    std::string known;
    for (const auto& entry : entries_)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
    throw InvalidArgument(fmt::format("there is no {} '{}'; there are: {}", kind_, name, known));
  }

  /// Adds an entry for as long as the value returned lives. Throws InvalidArgument like the
  /// constructor.
  Registration add(Entry entry) {
    append(std::move(entry));
    return Registration(this, std::prev(entries_.end()));
  }

 private:
  const Entry* look_up(std::string_view name) const {
    for (const auto& entry : entries_)
      if (std::string_view(entry.name) == name) return &entry;
    return nullptr;
  }

  void append(Entry entry) {
    const std::string_view name = entry.name;
    if (name.empty()) throw InvalidArgument(fmt::format("a {} has no name", kind_));
    if (std::string_view(entry.summary).empty())
      throw InvalidArgument(fmt::format("the {} '{}' has no summary", kind_, name));
    if (contains(name))
      throw InvalidArgument(fmt::format("there is already a {} '{}'", kind_, name));
    entries_.push_back(std::move(entry));
  }

  std::string kind_;
  std::list<Entry> entries_;
};

}  // namespace mercer
MERCER_API_END
