// main.cpp: `tutti`: one program, one command per question.
// SPDX-License-Identifier: Apache-2.0
#include "cli/program.hpp"

int main(int count, char** texts) { return tutti::cli::run_program(count, texts); }
