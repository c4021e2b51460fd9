"""Find many checkpoints and read them into a few flat tables.

``discovery`` finds candidates below the roots. ``candidates`` reads each candidate, and returns an
extraction or a failure, from which ``rows`` makes the rows of a view. ``inventory`` makes jobs from
rows and their ``lag``; ``write_tables`` writes rows as tables.

``scan_run`` runs all these steps on this machine, and ``migrate.spark`` runs them on Spark.
"""
