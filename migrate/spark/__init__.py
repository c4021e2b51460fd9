"""What runs Spark. Nothing outside this room imports PySpark, which is there only with the extra
``spark``."""
