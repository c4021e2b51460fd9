"""What runs Spark: the only importer of PySpark, which is there with the extra ``spark``."""
