#!/bin/sh
# Brings up the container engine, or says the exact next step: `sh scripts/engine.sh`. Exit status 0: it answers.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
address=${DOCKER_HOST:-unix:///var/run/docker.sock}
log=/var/log/dockerd.log
wait_s=40

state() { "${PYTHON:-python3}" -IS scripts/engine_state.py "$1"; }

stop() { # WHAT NEXT...
    printf '\nStopped: %s\nNext:\n' "$1"
    shift
    printf '    %s\n' "$@"
    exit 1
}

forget_dead() { # FILE NAME: drops a pid file whose process is gone, or whose number another program has by now
    pid=$(cat "$1" 2>/dev/null) || return 0
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] || rm -f "$1"
}

start_dockerd() {
    # A killed engine leaves these behind, and the next one takes the numbers in them for living processes.
    forget_dead /var/run/docker.pid dockerd
    forget_dead /var/run/docker/containerd/containerd.pid containerd
    echo "Starting dockerd (no service manager runs here); its log: $log"
    setsid dockerd >"$log" 2>&1 </dev/null &
    dockerd=$!
    waited=0
    while :; do
        case $(state 2) in answers | lacks*) return ;; esac
        [ "$waited" -lt "$wait_s" ] || break
        # Ours may have ended because another is starting: then that one's pid file is there.
        kill -0 "$dockerd" 2>/dev/null || [ -e /var/run/docker.pid ] || break
        sleep 1
        waited=$((waited + 1))
    done
    echo "The end of its log:"
    tail -n 5 "$log" | cut -c 1-300
    stop "dockerd did not start (waited $waited s)." "less $log     (mend what it says, then run make again)"
}

start() {
    if [ -n "${DOCKER_HOST:-}" ]; then
        stop "DOCKER_HOST is $address, and no engine answers there." \
            "unset DOCKER_HOST     (to use this machine's own engine; or start the one it names)"
    elif ! command -v dockerd >/dev/null; then
        stop "There is no container engine on this machine." \
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends docker.io mmdebstrap"
    elif [ ! -d /run/systemd/system ]; then
        [ "$(id -u)" = 0 ] || stop "The container engine is not running." "sudo sh scripts/engine.sh"
        start_dockerd
    else
        [ "$(id -u)" = 0 ] || stop "The container engine is not running." "sudo systemctl start docker"
        echo "Starting the docker service"
        systemctl start docker || stop "The docker service did not start." "journalctl -u docker --no-pager -n 20"
    fi
}

found=$(state 1)
case $found in
absent | refused)
    start
    found=$(state 5)
    ;;
silent)
    echo "The container engine at $address is slow to answer; waiting 5 s more."
    found=$(state 5)
    ;;
esac

case $found in
answers | elsewhere) ;;
denied)
    stop "This user ($(id -un)) may not use the container engine at $address." \
        "sudo usermod -aG docker $(id -un)     (members of that group can do anything on this machine)" \
        "newgrp docker     (or log out and in again), then run make again"
    ;;
lacks*)
    why="The container engine cannot limit: ${found#lacks }. Without that no box can be sealed."
    case $address,$found in
    */run/user/*) # a rootless engine limits only what systemd hands to users
        stop "$why" "sudo mkdir -p /etc/systemd/system/user@.service.d" \
            "printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' |" \
            "    sudo tee /etc/systemd/system/user@.service.d/pybox.conf" \
            "sudo reboot"
        ;;
    *memory* | *swap*) # compiled in, and switched off at boot by some kernels
        stop "$why" "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&cgroup_enable=memory swapaccount=1 /' /etc/default/grub" \
            "sudo update-grub && sudo reboot"
        ;;
    *)
        stop "$why" "sudo apt-get install -y linux-image-amd64 && sudo reboot     (on ARM: linux-image-arm64)" \
            "(without systemd: sudo apt-get install -y cgroupfs-mount && sudo cgroupfs-mount, then start dockerd again)"
        ;;
    esac
    ;;
silent)
    stop "The container engine at $address takes connections and does not answer." \
        "sudo systemctl restart docker     (without systemd: end the process dockerd, then run make again)"
    ;;
*) stop "What is at $address does not answer as a container engine: $found." "sudo systemctl restart docker" ;;
esac
