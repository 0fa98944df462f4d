# Functions that servers in Java share, on top of lib.bash. Expects `set -euo pipefail`.

# shellcheck source=lib.bash
. "$(dirname "$0")/../lib.bash"

# Small and quick to start: one compiler, one collector thread. The opened packages are those that Hadoop accesses by reflection.
java_options=(
    -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.net.preferIPv4Stack=true
    --add-opens=java.base/java.io=ALL-UNNAMED
    --add-opens=java.base/java.lang=ALL-UNNAMED
    --add-opens=java.base/java.lang.reflect=ALL-UNNAMED
    --add-opens=java.base/java.net=ALL-UNNAMED
    --add-opens=java.base/java.nio=ALL-UNNAMED
    --add-opens=java.base/java.util=ALL-UNNAMED
    --add-opens=java.base/java.util.concurrent=ALL-UNNAMED
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED
    --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED
)

# install_java: installs a compiler, Maven and curl if they are missing.
install_java() {
    command -v javac > /dev/null && command -v mvn > /dev/null && command -v curl > /dev/null && return
    packages default-jdk-headless maven curl
}

# fetch_jars POM FOLDER: downloads the jars of a pom unless they exist; two servers may do so at the same time.
fetch_jars() {
    (
        flock 8
        cmp --quiet "$1" "$2/complete" && exit 0
        rm -rf "$2"
        mvn -q -B -Dstyle.color=never -f "$1" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$2"
        # If a jar occurs twice under two names, the newer one is kept.
        rm -f "$2"/slf4j-log4j12-*.jar "$2"/log4j-1.2.*.jar "$2"/servlet-api-2.*.jar "$2"/jsp-api-2.*.jar
        cp "$1" "$2/complete"
    ) 8> "$2.lock"
}

# java_here CONF_DIR JARS HEAP CLASS ARGUMENT...: replaces this process by a Java process.
java_here() {
    local conf=$1 jars=$2 heap=$3
    shift 3
    mkdir -p "$state/tmp"
    cd "$state"
    exec java "-Xmx$heap" "-Djava.io.tmpdir=$state/tmp" "${java_options[@]}" -cp "$conf:$jars:$jars/*" "$@"
}
