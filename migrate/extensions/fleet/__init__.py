"""Find many checkpoints and read them into a few flat tables.

``discovery`` finds candidates under the roots. ``candidates`` reads each candidate, and ``rows``
makes rows of the tables from the result. ``lag`` computes the lag of a position. ``inventory``
makes a ``ScannedJob`` from a checkpoint's row and lags. ``write_tables`` writes the tables.

``scan_run`` runs the steps after ``discovery`` on this machine, and ``migrate.spark`` runs them on
Spark.
"""
