/// The version of steptimer, for a program that has to work with more than one.
///
/// This is the one place where it is written: the CMake package reads it from here. While MAJOR is 0, a new MINOR may
/// change what a caller sees; a new PATCH does not.
#pragma once

#define STEPTIMER_VERSION_MAJOR 0
#define STEPTIMER_VERSION_MINOR 1
#define STEPTIMER_VERSION_PATCH 0
