// "did you mean ...?" for mistyped names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mercer::cli {

/// " (did you mean 'fit'?)" when one of the names is close to `typed`, else nothing.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);

/// Returns `typed` when it is one of the choices; else throws InvalidArgument that lists them.
void require_choice(std::string_view flag, std::string_view typed,
                    const std::vector<std::string>& choices);

}  // namespace mercer::cli
