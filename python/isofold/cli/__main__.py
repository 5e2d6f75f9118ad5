"""`python -m isofold.cli` does what `isofold` does."""

from isofold.cli import main

main()
