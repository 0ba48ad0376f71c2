// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The quern executable. The command itself lies in the library, so that ops of other libraries are in the registry it sees.
#include "quern/cli/command_line.h"

int main(int argc, char** argv) { return quern::cli::command_line(argc, argv); }
