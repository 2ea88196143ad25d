// All options of the program, from the lists of fields of every struct that a verb adds. From it
// come the page docs/options.md (`mercer options`) and the way in which messages name options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/option.hpp"

namespace mercer::cli {

/// An option by the name of its field, with its default value; null when no verb has it. Where
/// several structs have a field of this name, the first.
const Option* find_option(std::string_view name);

/// The library names an option by its field in backquotes: `max_iterations`, `solver=kcg`. Here
/// that becomes what is typed: --max-iterations, --solver kcg. Other backquotes are left alone.
std::string with_dashes(std::string_view text);

/// docs/options.md: a table for each struct.
std::string options_page();

}  // namespace mercer::cli
