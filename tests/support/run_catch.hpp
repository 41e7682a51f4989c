#pragma once

/// Runs the Catch2 tests linked into this program, as Catch2's own main would.
int run_catch(int argc, char** argv);
