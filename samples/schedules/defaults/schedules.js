// A job that only prints its arguments: each is an environment variable, and KELOS_ARGUMENTS has all of them.
function says(words) {
    return celos.commandExternalService({ shell: 'echo "' + words + '"; echo "arguments: $KELOS_ARGUMENTS"' });
}
