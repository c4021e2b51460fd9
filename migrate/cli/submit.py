"""``migrate scan`` for spark-submit, which takes a file; what follows it is the command's own.

    submit=$(python -c 'from migrate.cli import submit; print(submit.__file__)')
    spark-submit --master yarn "$submit" s3://bucket/flink --output s3a://bucket/inventory

spark-submit puts stderr into stdout: ``--quiet`` leaves the table alone there.
"""

import sys

if __name__ == "__main__":
    # The directory of this file, before all others; modules of it are named like Python's own.
    del sys.path[0]
    sys.argv[:1] = ["migrate", "scan"]
    from migrate.cli import main

    main()
