// `fusebox`: the commands of replay/cli and of this room.
#include "fuzz/cli/commands.h"

int main(int argc, char** argv) {
  const fusebox::cli::AddCommand commands[] = {fusebox::cli::add_fuzz, fusebox::cli::add_reduce};
  return fusebox::cli::run_command_line(argc, argv, commands);
}
