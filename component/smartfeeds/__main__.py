"""`python -m smartfeeds` is the command `smartfeeds`."""

import sys

# Before anything else is imported: an older Python would end with a traceback about a module that it lacks. An
# installation checks `requires-python`, but a checkout can be run by any Python.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        "smartfeeds: this is Python %d.%d, and smartfeeds needs Python 3.11 or newer; "  # noqa: UP031
        "run it with a newer one, such as python3.11 -m smartfeeds" % sys.version_info[:2]
    )

from smartfeeds.cli import main

main()
