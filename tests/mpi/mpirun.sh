#!/bin/sh
# mpirun.sh <mpirun> <ranks> <program> [arguments]: the program on this machine alone, also as root, and with more ranks
# than cores.
set -eu
mpirun=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1  # Open MPI refuses root otherwise
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader
export OMPI_MCA_btl_vader_single_copy_mechanism=none  # where a container forbids it, Open MPI says so on stderr
exec "$mpirun" -n "$ranks" "$@"
