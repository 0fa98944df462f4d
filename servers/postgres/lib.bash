# What the servers with PostgreSQL have in common; sourced by them, after servers/lib.bash.

# The programs of the newest version: Debian does not put them on the path.
tools() { ls -d /usr/lib/postgresql/*/bin 2> /dev/null | sort --version-sort | tail -n 1; }

# PostgreSQL refuses to run as root: then its data belongs to the user of Debian's package, who must reach the folder.
user() { if [ "$(id -u)" = 0 ]; then echo postgres; else id -un; fi; }

as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid postgres --regid postgres --clear-groups --no-new-privs)

# reachable DATA: makes a folder that this user owns and reaches.
reachable() {
    local folder=$state data=$1
    mkdir -p "$data"
    chmod 700 "$data"
    [ "$(id -u)" = 0 ] || return 0
    while [ "$folder" != / ]; do
        chmod o+x "$folder"
        folder=$(dirname "$folder")
    done
    chown postgres: "$data"
}

# kill_all WORD: ends that server at once. Each of its processes has a session of its own.
kill_all() {
    local children
    lives "$1" || return 0
    children=$(pgrep -P "$(cat "$state/$1.pid")" || true)
    end "$1" KILL
    [ -z "$children" ] || kill -KILL $children 2> /dev/null || true
}
