// A job that only says what it was given: its arguments are variables of its environment, KELOS_ARGUMENTS has all of them.
function says(words) {
    return celos.commandExternalService({ shell: 'echo "' + words + '"; echo "arguments: $KELOS_ARGUMENTS"' });
}
