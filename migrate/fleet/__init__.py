"""Many checkpoints at once: the search for them, and the rows of each in a few flat tables.

Roots -> candidates (``discovery``); a candidate -> its extraction or a failure (``candidates``) ->
the rows of a view (``rows``); rows and their ``lag`` -> jobs (``inventory``) and ``tables``.
``scan_run`` does it all for a scan, on this machine; ``migrate.spark`` does it on Spark.
"""
