"""`python -m smartfeeds` is the command `smartfeeds`."""

from smartfeeds.cli import main

main()
