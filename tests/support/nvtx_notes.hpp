// Stands where Nsight Systems stands: a library that NVTX loads and hands its calls to. This one notes them down.
#pragma once

#include <string>
#include <vector>

/// "start step 0 #1", "end #1", ... in the order of the calls; numbers are those of the ranges. "domain NAME" for a domain made.
std::vector<std::string>& nvtx_notes();
