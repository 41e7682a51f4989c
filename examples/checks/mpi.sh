#!/bin/sh
# mpi.sh MPIEXEC RANKS PROGRAM ARGUMENTS...: starts so many ranks of PROGRAM on this machine alone, also as root and with
# fewer cores than ranks. What Open MPI is told here, other MPIs do not read.
set -eu
mpiexec=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none        # or two jobs at a time would share the first cores
export OMPI_MCA_mpi_yield_when_idle=1                   # a rank that waits leaves its core to those that work
export OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader  # neither ssh nor a network interface
export OMPI_MCA_btl_vader_single_copy_mechanism=none  # where a container forbids it, Open MPI says so on stderr
export OMPI_MCA_orte_execute_quiet=1                  # of a rank that fails, its own sentence is enough
export HWLOC_HIDE_ERRORS=2                            # it complains where no /sys is mounted
exec "$mpiexec" -n "$ranks" "$@" < /dev/null
