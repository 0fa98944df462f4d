# Functions that the servers of the Hadoop family share, on top of ../java.bash. Expects `set -euo pipefail`.

# shellcheck source=../java.bash
. "$(dirname "$0")/../java.bash"

hadoop_pom=$(dirname "$0")/../hadoop/pom.xml
hadoop_jars=$cache/hadoop-$(sed -n 's:.*<hadoop.version>\(.*\)</.*:\1:p' "$hadoop_pom")

install_hadoop() {
    local page
    install_java && fetch_jars "$hadoop_pom" "$hadoop_jars"
    # The jars lack the pages of the web servers, which do not start without a folder for them.
    for page in hdfs datanode; do
        mkdir -p "$hadoop_jars/webapps/$page/WEB-INF"
        echo '<web-app/>' > "$hadoop_jars/webapps/$page/WEB-INF/web.xml"
    done
}

# site FILE NAME VALUE...: writes a file of settings.
site() {
    local file=$1
    shift
    mkdir -p "$(dirname "$file")"
    {
        echo '<?xml version="1.0"?>'
        echo '<configuration>'
        while [ $# -gt 1 ]; do
            printf '  <property><name>%s</name><value>%s</value></property>\n' "$1" "$2"
            shift 2
        done
        echo '</configuration>'
    } > "$file"
}

# log4j FOLDER: logs go to the standard output of the process, which is a file.
log4j() {
    mkdir -p "$1"
    cat > "$1/log4j.properties" << 'PROPERTIES'
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
PROPERTIES
}

# core_site FOLDER FILE_SYSTEM NAME VALUE...: the settings of every process; Oozie may impersonate its users.
core_site() {
    log4j "$1"
    site "$1/core-site.xml" "${@:3}" \
        fs.defaultFS "$2" \
        hadoop.tmp.dir "$state/tmp" \
        hadoop.security.group.mapping org.apache.hadoop.security.NullGroupsMapping \
        hadoop.http.staticuser.user nobody \
        hadoop.proxyuser.oozie.hosts '*' \
        hadoop.proxyuser.oozie.users '*'
}

# Settings of all name nodes. Safe mode ends as soon as the blocks are reported.
name_node_settings=(
    dfs.namenode.handler.count 4
    dfs.namenode.safemode.threshold-pct 1
    dfs.namenode.safemode.extension 0
    dfs.namenode.resource.du.reserved 0
    dfs.permissions.enabled true
    dfs.replication 1
)

# format CONF_DIR NAME_FOLDER: creates an empty name space if there is none.
format() {
    [ -e "$2/current/VERSION" ] ||
        (java_here "$1" "$hadoop_jars" 128m org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive)
}

# run_name_node CONF_DIR: replaces this process by a name node.
run_name_node() { java_here "$1" "$hadoop_jars" 256m org.apache.hadoop.hdfs.server.namenode.NameNode; }

fetch() { curl --silent --fail --max-time 5 "$@"; }

# webhdfs PORT METHOD USER PATH QUERY OPTION...: one request to a name node.
# What is written may take a while on a busy machine.
webhdfs() { fetch --show-error --max-time 60 --request "$2" "http://127.0.0.1:$1/webhdfs/v1$4?user.name=$3&$5" "${@:6}"; }

# folder PORT PATH OWNER PERMISSION: creates it as the superuser, who is `hdfs`.
folder() {
    webhdfs "$1" PUT hdfs "$2" op=MKDIRS &&
        webhdfs "$1" PUT hdfs "$2" "op=SETOWNER&owner=$3" &&
        webhdfs "$1" PUT hdfs "$2" "op=SETPERMISSION&permission=$4"
}

# lay_out PORT: creates the usual folders, and one that only the superuser may read.
lay_out() {
    [ -e "$state/laid-out" ] && return
    folder "$1" /tmp hdfs 1777 && folder "$1" /user hdfs 755 && folder "$1" "/user/$(id -un)" "$(id -un)" 755 &&
        folder "$1" /user/celos celos 755 && folder "$1" /private hdfs 700 && webhdfs "$1" PUT hdfs /private/secret op=MKDIRS &&
        touch "$state/laid-out"
}
