// The preconditioners of K + D, D the noise, by the name that users type. A new one is a file, a
// line in registry.cpp and a test; the laws in tests/preconditioners/registry_test.cpp do the rest.
#pragma once

#include <string_view>

#include "mercer/core/registry.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

Registry<PreconditionerInfo>& preconditioners();
/// Throws InvalidArgument that lists the names there are.
inline const PreconditionerInfo& preconditioner(std::string_view name) {
  return preconditioners().find(name);
}

/// Throws InvalidArgument when an option is set that this preconditioner does not take.
void check(const PreconditionerInfo& info, PreconditionerOptions options);

/// Builds one, with its report filled in, whether it is in the list or not. Throws InvalidArgument,
/// with the reason, when it cannot be used on this kernel and these points.
Built make(const PreconditionerInfo& info, const Target& target,
           const PreconditionerOptions& options = {});
/// The same by name, with its report filled in. Throws InvalidArgument, with the reason, when it
/// cannot be used on this kernel and these points.
Built make(std::string_view name, const Target& target, const PreconditionerOptions& options = {});
Built make(std::string_view name, const operators::KernelOperator& k, const linalg::Diagonal& noise,
           const PreconditionerOptions& options = {});

}  // namespace mercer::preconditioners
MERCER_API_END
