"""Functions with other packages' names, arguments and results: ``isofold.compat.scipy``."""
