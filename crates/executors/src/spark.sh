# Runs spark-submit ("$@"), hands its output on, and fails where it says that the driver did not finish: on a standalone
# cluster it exits with 0 all the same. STRICT is set where the master is known to be one, so that it has to say so.
{
    "$@" 2>&1
    echo "kelos: spark-submit exited with status $?"
} | {
    state= status=1
    while IFS= read -r line; do
        case $line in
            "kelos: spark-submit exited with status "*)
                status=${line##* }
                continue
                ;;
            *"State of driver "*" is "*", exiting spark-submit"*)
                state=${line##* is }
                state=${state%%,*}
                ;;
        esac
        printf '%s\n' "$line"
    done
    [ "$status" -eq 0 ] || exit "$status"
    case $state in
        FINISHED) exit 0 ;;
        '')
            [ -n "${STRICT:-}" ] || exit 0
            echo 'kelos: spark-submit did not say how the driver ended, which it does at the log level INFO'
            ;;
        *) echo "kelos: spark-submit says that the driver is $state" ;;
    esac
    exit 1
}
