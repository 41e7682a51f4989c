/// The version of steptimer, for a program that has to work with more than one.
///
/// This is the one place where it is written: the CMake package reads it from here. While MAJOR is 0, a new MINOR may
/// change what a caller sees; a new PATCH does not.
#pragma once

/// X of the version X.Y.Z.
#define STEPTIMER_VERSION_MAJOR 0
/// Y of the version X.Y.Z.
#define STEPTIMER_VERSION_MINOR 1
/// Z of the version X.Y.Z.
#define STEPTIMER_VERSION_PATCH 0
