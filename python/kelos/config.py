"""Prints the apps of a configuration backend of Stolos as a tasks.json: `python3 -m kelos.config PACKAGE.MODULE.CLASS`.

The backend is a class without arguments whose instances are mappings of apps. Kelos runs this as the command of
`STOLOS_CONFIGURATION_BACKEND="exec:python3 -m kelos.config PACKAGE.MODULE.CLASS"`.
"""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence


def plain(value):
    """The value as JSON has it: an object for a mapping, a list for a sequence."""
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        return {str(key): plain(value[key]) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) or hasattr(value, "to_list"):
        return [plain(one) for one in value]
    return value


def main(argv):
    """The exit status for a command line."""
    if len(argv) != 1 or "." not in argv[0]:
        print("usage: python3 -m kelos.config PACKAGE.MODULE.CLASS", file=sys.stderr)
        return 2
    module, _, name = argv[0].rpartition(".")
    try:
        backend = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        print("failed to use {} as a configuration backend: {}".format(argv[0], error), file=sys.stderr)
        return 1
    json.dump(plain(backend()), sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
