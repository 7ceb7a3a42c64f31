#!/usr/bin/env bash
# A slurm cluster on this machine: a controller and two nodes on loopback, all in one folder, for tests.
#
#     tests/cluster/slurm.sh start FOLDER [PORT]       # PORT and the next two must be free
#     export SLURM_CONF=FOLDER/slurm.conf PATH=FOLDER/bin:$PATH    # now sbatch, squeue and snakemake find it
#     tests/cluster/slurm.sh node-fails FOLDER NAME    # as if its power were cut: node daemon, jobs and all
#     tests/cluster/slurm.sh node-starts FOLDER NAME
#     tests/cluster/slurm.sh stop FOLDER
#
# It needs the programs of slurm-wlm and munge, not their services, and does not touch an installed slurm. Each node claims 16
# cores and two GPUs, whatever the machine has, so that GPU jobs are placed as on a real cluster.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

command=$1
folder=$(realpath -m "$2")
export SLURM_CONF="$folder/slurm.conf"

write_configuration() {
    local port=$1
    cat >"$SLURM_CONF" <<END
ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
# Short-lived credentials: a job whose node has failed must wait for its own to expire (by default two minutes).
AuthInfo=socket=$folder/munge.socket,cred_expire=15
CredType=cred/munge
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
# A node that is silent for this many seconds has failed, and its jobs restart elsewhere. On a busy machine ten are too few.
SlurmdTimeout=300
ReturnToService=2
JobRequeue=1
KillWait=2
MinJobAge=600
DefMemPerCPU=1000
GresTypes=gpu
NodeName=node1 NodeAddr=127.0.0.1 NodeHostname=$(hostname -s) Port=$((port + 1)) CPUs=16 RealMemory=200000 Gres=gpu:2
NodeName=node2 NodeAddr=127.0.0.1 NodeHostname=$(hostname -s) Port=$((port + 2)) CPUs=16 RealMemory=200000 Gres=gpu:2
PartitionName=test Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
END
    # Any two device files will do: without cgroups slurm only counts them, and sets CUDA_VISIBLE_DEVICES.
    printf 'Name=gpu File=/dev/%s Flags=nvidia_gpu_env\n' null zero >"$folder/gres.conf"
    # Snakemake's plugin does not pass SLURM_CONF on to `srun`, because on a real cluster nobody needs it.
    mkdir -p "$folder/bin"
    printf '#!/bin/sh\nSLURM_CONF=%q exec %q "$@"\n' "$SLURM_CONF" "$(command -v srun)" >"$folder/bin/srun"
    chmod +x "$folder/bin/srun"
}

start_node() {
    mkdir -p "$folder/$1"
    slurmd -N "$1" -f "$SLURM_CONF"
}

# Processes of jobs on a node have its name in their environment; their parents are slurm's step daemons.
jobs_on() {
    local name=$1 process parent
    for process in $(pgrep --uid "$(id -u)"); do
        tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" | grep -qx "SLURM_CONF=$SLURM_CONF" || continue
        tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" | grep -qx "SLURMD_NODENAME=$name" || continue
        parent=$(ps -o ppid= -p "$process" | tr -d ' ')
        [ "$(ps -o comm= -p "$parent")" = slurmstepd ] && echo "$parent"
        echo "$process"
    done
}

end() { # PID_FILE SIGNAL
    [ -s "$1" ] && kill "-$2" "$(cat "$1")" 2>/dev/null || true
}

case $command in
start)
    for program in munged slurmctld slurmd sbatch scontrol; do
        command -v "$program" >/dev/null || { echo "$program is not installed (Debian: slurm-wlm and munge)" >&2; exit 3; }
    done
    mkdir -p "$folder/controller" && chmod 755 "$folder"
    write_configuration "${3:-16817}"
    (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
    slurmctld -f "$SLURM_CONF"
    start_node node1
    start_node node2
    for _ in $(seq 600); do
        [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null || true)" = 2 ] && exit 0
        sleep 0.5
    done
    echo "the nodes are not up after five minutes; see $folder/*.log" >&2
    exit 4
    ;;
node-fails)
    end "$folder/$3.pid" KILL
    jobs_on "$3" | sort -u | xargs --no-run-if-empty kill -KILL 2>/dev/null || true
    # The controller would notice by itself only some time after SlurmdTimeout.
    scontrol update NodeName="$3" State=DOWN Reason="power cut"
    ;;
node-starts)
    start_node "$3"
    ;;
stop)
    scancel --user "$(id -un)" 2>/dev/null || true
    for _ in $(seq 20); do
        [ -z "$(squeue --noheader 2>/dev/null)" ] && break
        sleep 0.5
    done
    for name in node1 node2; do
        end "$folder/$name.pid" TERM
        jobs_on "$name" | sort -u | xargs --no-run-if-empty kill -KILL 2>/dev/null || true
    done
    controller=$(cat "$folder/slurmctld.pid" 2>/dev/null || true)
    end "$folder/slurmctld.pid" TERM
    for _ in $(seq 40); do
        [[ "$(ps -o stat= -p "${controller:-0}" 2>/dev/null)" =~ ^[^Z] ]] || break
        sleep 0.25
    done
    end "$folder/munged.pid" TERM
    ;;
*)
    echo "unknown command $command" >&2
    exit 2
    ;;
esac
