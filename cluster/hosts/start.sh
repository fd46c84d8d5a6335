#!/usr/bin/env bash
# Start Ray on this host. What follows the word goes to `ray start`, for example
#   ./start.sh head --num-cpus=0
#   ./start.sh worker --resources='{"spot": 1}'
#   ./start.sh stop
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=cluster/hosts/cluster.env
source "${NASBO_CLUSTER_ENV:-$here/cluster.env}"

role=${1:-}
[ $# -gt 0 ] && shift

export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$TOKEN_FILE" RAY_USAGE_STATS_ENABLED=0

make_token() {
  (
    umask 077
    mkdir -p "$(dirname "$TOKEN_FILE")"
    head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$TOKEN_FILE"
  )
}

case $role in
  head)
    [ -s "$TOKEN_FILE" ] || make_token
    chmod 600 "$TOKEN_FILE"
    echo "dashboard: ssh -N -L $DASHBOARD_PORT:127.0.0.1:$DASHBOARD_PORT $(hostname)"
    echo "then:      nasbo launch SWEEP.yaml --on http://127.0.0.1:$DASHBOARD_PORT --dir DIR"
    exec ray start --head --node-ip-address="$HEAD_ADDRESS" --port="$RAY_PORT" \
      --include-dashboard=true --dashboard-host=127.0.0.1 --dashboard-port="$DASHBOARD_PORT" \
      --dashboard-agent-listen-port="${AGENT_PORT:-52365}" \
      --metrics-export-port="$METRICS_PORT" --disable-usage-stats "$@"
    ;;
  worker)
    if ! [ -s "$TOKEN_FILE" ]; then
      echo "start.sh: no token in $TOKEN_FILE: scp $HEAD_ADDRESS:$TOKEN_FILE $TOKEN_FILE" >&2
      exit 2
    fi
    chmod 600 "$TOKEN_FILE"
    exec ray start --address="$HEAD_ADDRESS:$RAY_PORT" --metrics-export-port="$METRICS_PORT" \
      --dashboard-agent-listen-port="${AGENT_PORT:-52365}" --disable-usage-stats "$@"
    ;;
  stop)
    # `ray stop` would end every Ray of this user; these are the processes of this cluster.
    processes="--gcs(-address=[^ ]*:|_server_port=)$RAY_PORT( |\$)"
    pkill -TERM -u "$(id -u)" -f -- "$processes" || exit 0
    for _ in $(seq 20); do
      pgrep -u "$(id -u)" -f -- "$processes" >/dev/null || exit 0
      sleep 0.5
    done
    pkill -KILL -u "$(id -u)" -f -- "$processes" || true
    ;;
  *)
    echo "usage: start.sh head|worker [options of ray start], or start.sh stop" >&2
    exit 2
    ;;
esac
