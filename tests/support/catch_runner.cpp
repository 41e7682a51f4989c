// Catch2's own session, compiled once for every test program: see run_catch.hpp.

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "run_catch.hpp"

int run_catch(int argc, char** argv) { return Catch::Session().run(argc, argv); }
