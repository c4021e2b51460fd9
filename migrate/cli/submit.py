"""A program for spark-submit that runs ``migrate scan`` with the program's arguments.

    submit=$(python -c 'from migrate.cli import submit; print(submit.__file__)')
    spark-submit --master yarn "$submit" s3://bucket/flink --output s3a://bucket/inventory

spark-submit writes both stdout and stderr of a Python program to stdout. With ``--quiet``, stdout
contains only the table, warnings, and errors.
"""

import sys

if __name__ == "__main__":
    # Python has added this file's directory to ``sys.path``. Remove it, because some modules in it,
    # such as ``inspect``, have the same names as modules of the standard library.
    del sys.path[0]
    sys.argv[:1] = ["migrate", "scan"]
    from migrate.cli import main

    main()
