// --config FILE: options from a JSON file, by the names of their fields. The file is an object
// {"kernel": "rbf", "max_iterations": 50}, or the whole record that a run printed with --json,
// whose `options` are taken.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/option.hpp"

namespace mercer::cli {

/// The field behind --config.
struct ConfigOptions {
  std::string config;
};

template <class Visitor>
void visit_fields(ConfigOptions& o, Visitor&& field) {
  field({"config", "FILE",
         "values of these options from a JSON file {\"kernel\": \"rbf\", ...}, or from what an "
         "earlier run printed with `json`; words here override it",
         "none", Affects::nothing},
        o.config, Any{});
}

struct ConfigRead {
  std::set<std::string, std::less<>> given;  // fields whose value is not the default
  std::vector<std::string> notes;            // what should be said of the file, a sentence each
};

/// Sets the options that the file names. Throws InvalidArgument, naming file and field, for a name
/// that `verb` does not have and for a value that does not suit. In a whole record, an option of
/// another verb is left out with a note: `plan` takes the record of `fit`.
ConfigRead read_config(const std::string& path, const std::string& verb,
                       const std::vector<Option>& options);

}  // namespace mercer::cli
