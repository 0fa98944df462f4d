# Functions that the scripts of servers share; sourced by them. Expects `set -euo pipefail` and KELOS_SERVERS_DIR.

# The state of this server, named after its folder, and the downloads of all.
name=$(basename "$(cd "$(dirname "$0")" && pwd)")
state=$KELOS_SERVERS_DIR/$name
cache=$KELOS_SERVERS_DIR/cache
mkdir -p "$state" "$cache"

# port WORD: a free loopback port, always the same for this word. The system assigns other ports from 32768
# on, so the port stays free while its server is down.
port() {
    local file=$state/port.$1 port
    while [ ! -s "$file" ]; do
        port=$((20000 + RANDOM % 10000))
        answers "$port" || grep -qsx "$port" "$KELOS_SERVERS_DIR"/*/port.* || {
            # The server and whoever waits for it may both be first: one of them makes the file, and both read it.
            echo "$port" > "$file.$BASHPID"
            ln "$file.$BASHPID" "$file" 2> /dev/null || true
            rm -f "$file.$BASHPID"
        }
    done
    cat "$file"
}

# answers PORT: whether connections to it are accepted.
answers() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

# daemon WORD COMMAND...: starts a process in a session of its own; its log is WORD.log, its id in WORD.pid.
daemon() {
    local word=$1
    shift
    setsid "$@" > "$state/$word.log" 2>&1 < /dev/null &
    echo $! > "$state/$word.pid"
}

# lives WORD: whether that process exists.
lives() { [ -s "$state/$1.pid" ] && kill -0 "$(cat "$state/$1.pid")" 2> /dev/null; }

# end WORD SIGNAL: a signal to the whole session of that process, and a wait of at most ten seconds for its end.
end() {
    local pid n
    lives "$1" || { rm -f "$state/$1.pid"; return 0; }
    pid=$(cat "$state/$1.pid")
    kill "-$2" -- "-$pid" 2> /dev/null || kill "-$2" "$pid" 2> /dev/null || true
    for n in $(seq 100); do
        kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    kill -KILL -- "-$pid" 2> /dev/null || true
    rm -f "$state/$1.pid"
}

# packages NAME...: installs packages of Debian whose commands are missing. Of several servers at the same time, one waits for the other.
packages() {
    (
        flock 7
        apt_get install "$@" || { apt_get update && apt_get install "$@"; }
    ) 7> "$cache/apt.lock"
}

# What a package starts must not inherit the lock.
apt_get() { apt-get "$1" --yes --no-install-recommends "${@:2}" 7>&-; }

# venv FOLDER REQUIREMENT...: a Python environment in the cache with these packages.
venv() {
    local folder=$cache/$1
    shift
    [ "$(cat "$folder/installed" 2> /dev/null)" = "$*" ] && return
    python3 -m venv "$folder" || { packages python3-venv && python3 -m venv "$folder"; }
    "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
    echo "$*" > "$folder/installed"
}
