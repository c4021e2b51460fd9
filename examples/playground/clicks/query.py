"""Copy the topic clicks into files, one per batch, as the Flink job clicks does.

The checkpoint location contains the start offsets. Spark uses startingOffsets only if it does not
find this location; by default, it would then skip all earlier records. With --finish, the query
ends its unfinished batch, reads the available records, and stops.
"""

import sys

from pyspark.sql import SparkSession

trigger = {"availableNow": True} if "--finish" in sys.argv else {"processingTime": "2 seconds"}
spark = SparkSession.builder.appName("clicks").getOrCreate()
clicks = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "$kafka")
    .option("subscribe", "clicks")
    .option("startingOffsets", "earliest")
    .load()
)
(
    clicks.selectExpr("CAST(value AS STRING)")
    .coalesce(1)
    .writeStream.format("text")
    .option("path", "$folder/spark")
    .option("checkpointLocation", "$folder/checkpoint")
    .trigger(**trigger)
    .start()
    .awaitTermination()
)
