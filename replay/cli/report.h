// The output that the commands share: errors, and lines of text or JSON.
#pragma once

#include <string>
#include <string_view>

#include "ir/table/error.h"
#include "replay/cli/commands.h"
#include "serde/bundle.h"

namespace fusebox::cli {

// Print to standard output, unchanged. Throw kFileWrite if it cannot be written.
void print_text(std::string_view text);
void print_line(std::string_view line);

// {"code":"E0203","message":"…","place":"%y"}
std::string error_object(ErrorCode code, std::string_view message, std::string_view place);
// `fusebox: E0203 %y: message` to standard error, or an object with `error` to standard output.
void report_error(const Error& e, const Common& common);
void note(std::string_view text);  // to standard error

// 3 for an internal error, else 2.
int exit_code(ErrorCode code);
// For a run that failed: 1 if a check of the host executor found something, else as exit_code.
int failure_exit_code(ErrorCode code);

// After an internal error: writes a bundle that reproduces it to the folder for temporary files, and says where.
void write_reproducer(const Bundle& bundle, const Common& common);

}  // namespace fusebox::cli
