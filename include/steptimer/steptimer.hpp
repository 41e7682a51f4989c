/// The core of steptimer: everything that needs the standard library alone. CUDA and fmt have headers of their own,
/// cuda_backend.hpp and format.hpp.
#pragma once

#include "detail/macros_keep.hpp"

#include "backend.hpp"
#include "cpu_backend.hpp"
#include "manual_backend.hpp"
#include "null_backend.hpp"
#include "step_counts.hpp"
#include "step_record.hpp"
#include "step_summary.hpp"
#include "step_timer.hpp"
#include "step_timer_options.hpp"
#include "version.hpp"

#include "detail/macros_restore.hpp"
